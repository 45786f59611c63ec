#include "optimized/transport/mpi/mpi_watch.h"

#include <algorithm>
#include <utility>

namespace ringlab::mpi {
namespace {

constexpr std::chrono::milliseconds kBeat{5};
constexpr std::chrono::milliseconds kPause{1};       // of an inquiry
constexpr std::chrono::milliseconds kLookEach{100};  // between looks at the processes of others
// A rank at work that comes to wait within this time says more than this thread can: its last
// events. Launchers leave a second between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kPatience{150};
constexpr std::chrono::milliseconds kAway{300};

}  // namespace

Watch::Watch(std::mutex& mpi, ControlChannel& control, const PeerProcesses& processes,
             const MpiOptions& options)
    : control_(control), processes_(processes), options_(options), mpi_(mpi), thread_([this] {
        run();
      }) {}

Watch::~Watch() { stop(); }

void Watch::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mpi_);
    stopped_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void Watch::waits_for(int peer) {
  control_.set_waiting_for(peer);
  awaited_ = peer;
  // From now on, not from the job's start: each wait has the whole timeout.
  judge_at_ = Clock::now() + duration_of(options_.timeout_s);
}

void Watch::works() {
  control_.set_waiting_for(kNobody);
  awaited_.reset();
}

void Watch::knows(std::unique_lock<std::mutex>& lock) {
  // The watch may be in the middle of a last word, with the mutex free: it is heard out first.
  change_.wait(lock, [this] { return !speaking_; });
  knows_ = true;
}

RankError Watch::error_of(const Failed& failed, const std::string& doing, double elapsed_s) const {
  const int rank = control_.rank();
  RankFailure failure{.rank = rank,
                      .suspect = failed.suspect,
                      .operation = doing,
                      .reason = failed.why,
                      .elapsed_s = elapsed_s};
  const bool of_itself = failed.suspect == rank;
  // The signal came to this rank as well, so it is told as such and not as another's death.
  if (failed.asked_to_end && (of_itself || end_wish() == EndWish::asked)) {
    failure.suspect = kNobody;  // all of them are well
    if (!of_itself) failure.reason += ", as was " + name_of(rank);
  } else if (of_itself && failed.finder != rank) {
    // Others took this rank for the culprit, and it still lives to say so.
    failure.reason = name_of(failed.finder) + " gave up on this rank (" + failed.why + ")";
  }
  return RankError(std::move(failure));
}

void Watch::run() {
  std::unique_lock lock(mpi_);
  try {
    while (!stopped_) {
      // After abandon() MPI is not touched; the thread stays for stop().
      if (!control_.is_abandoned()) {
        control_.poll();
        if (Clock::now() - beat_ > kAway) come_back(lock);
        continuations_ = continuations();
        beat_ = Clock::now();
        look(lock);
      }
      // Sleeps with the mutex free: this is when the rank's own thread gets its turn.
      change_.wait_for(lock, kBeat, [this] { return stopped_; });
    }
  } catch (...) {  // of MPI or memory: the rank's own thread meets it by itself
  }
}

void Watch::look(std::unique_lock<std::mutex>& lock) {
  if (knows_) return;
  if (control_.failed()) {
    // Given some patience: a rank that comes to wait says more, with its last events.
    if (!told_at_) told_at_ = Clock::now();
    if (!awaited_ && Clock::now() - *told_at_ >= kPatience) speak(lock, *control_.failed());
    return;
  }
  const EndWish wish = end_wish();
  const bool is_alone = control_.ranks() == 1;  // started by hand, from a shell that may end
  if (wish == EndWish::asked || (wish == EndWish::orphaned && !is_alone)) {
    return judge_end(lock, wish);
  }
  // Before delays are judged: a process that has ended explains them all.
  if (awaited_ != kEverybody && look_around()) return;
  if (awaited_ && Clock::now() >= judge_at_) judge_delay(lock);
}

// Who is at the end of the job may leave it, so they are not looked for by those who wait for that.
bool Watch::look_around() {
  if (Clock::now() < look_at_) return false;
  look_at_ = Clock::now() + kLookEach;
  const auto found = find_dead_here(control_, processes_);
  if (!found) return false;
  control_.announce({.finder = control_.rank(), .suspect = found->suspect, .why = found->why});
  return true;
}

Inquiry Watch::inquiry(std::unique_lock<std::mutex>& lock) {
  return {.control = control_,
          .processes = processes_,
          .grace = duration_of(options_.grace_s),
          .timeout_s = options_.timeout_s,
          .pause = [this, &lock] {
            change_.wait_for(lock, kPause, [this] { return stopped_; });
            return !stopped_ && !knows_ && !control_.is_abandoned() && !control_.failed();
          }};
}

// The awaited message may come while others are asked, and then the next wait begin.
void Watch::judge_delay(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point of_this_wait = judge_at_;
  // Asked with the mutex given up in pauses, so the wait may be over when the answer comes.
  const Inquiry questions = inquiry(lock);
  const Inquiry of_one_wait{
      questions.control, questions.processes, questions.grace, questions.timeout_s,
      [&] { return questions.pause() && awaited_ && judge_at_ == of_this_wait; }};
  const auto verdict = find_suspect(of_one_wait, *awaited_);
  // The verdict is of a wait that is no more, or somebody else was faster.
  if (!awaited_ || judge_at_ != of_this_wait || knows_ || control_.failed()) return;
  if (verdict) {
    control_.announce(
        {.finder = control_.rank(), .suspect = verdict->suspect, .why = verdict->why});
    return;
  }
  const auto pause = duration_of(options_.timeout_s) / 20;  // others get on: it is asked again
  judge_at_ = Clock::now() + std::clamp<Clock::duration>(pause, kBeat, std::chrono::seconds(1));
}

void Watch::judge_end(std::unique_lock<std::mutex>& lock, EndWish wish) {
  const auto dead = find_dead(inquiry(lock));
  if (stopped_ || knows_ || control_.is_abandoned() || control_.failed()) return;
  const int rank = control_.rank();
  Failed failed{.finder = rank};
  if (dead) {
    // A dead rank explains the signal: launchers end the others when one has died.
    failed.suspect = dead->suspect;
    failed.why = dead->why + " (the launcher is ending the job)";
  } else if (wish == EndWish::asked) {
    // Nobody is dead: then the wish itself is the reason, and the rank blames no other.
    failed.suspect = rank;
    failed.why =
        name_of(rank) + " was asked to end (" + asking_signal() + "), and no rank was dead";
    failed.asked_to_end = true;
  } else {
    failed.why = "the process that started " + name_of(rank) + " has ended";
  }
  control_.announce(failed);
}

// This thread has not run for long. If this rank was stopped (launchers send SIGCONT to those that
// were not, too), others may have given up on it and said so, or have ended: no fault of theirs.
void Watch::come_back(std::unique_lock<std::mutex>& lock) {
  change_.wait_for(lock, kBeat,
                   [this] { return stopped_; });  // the handler of SIGCONT has its turn
  if (continuations_ == continuations()) return;
  const auto heard = [this] { return stopped_ || knows_ || control_.failed(); };
  for (const auto end = Clock::now() + kPatience; !heard() && Clock::now() < end;) {
    change_.wait_for(lock, kBeat, [this] { return stopped_; });
    if (!control_.is_abandoned()) control_.poll();
  }
  if (heard() || control_.is_abandoned()) return;
  const auto dead = find_dead(inquiry(lock));
  if (!dead || heard() || control_.is_abandoned()) return;
  const int rank = control_.rank();
  control_.announce({.finder = rank,
                     .why = name_of(rank) + " was stopped, and meanwhile " + dead->why +
                            ", perhaps for want of it"});
}

void Watch::speak(std::unique_lock<std::mutex>& lock, const Failed& failed) {
  if (!options_.last_word) return;
  const RankError error = error_of(failed, "go on", 0);
  speaking_ = true;
  // Unlocked: the callee may take its time, and may end the process.
  lock.unlock();
  options_.last_word(error);
  lock.lock();
  speaking_ = false;
  knows_ = true;
  change_.notify_all();
}

}  // namespace ringlab::mpi
