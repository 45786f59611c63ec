#include "optimized/transport/mpi/mpi_guard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "optimized/transport/mpi/mpi_watch.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

constexpr double kLeastToCall = 20;  // many processes start at once, perhaps on a busy machine
constexpr double kGraceSeconds = 1;  // for a rank that is about to come
// The time left after SIGTERM to the end of a job that is all right, on a busy machine too; launchers
// leave a second before SIGKILL.
constexpr std::chrono::milliseconds kStillToReturn{600};

std::string what_happened(EndWish wish) {
  switch (wish) {
    case EndWish::asked:
      return "this process was asked to end (" + asking_signal() + ")";
    case EndWish::orphaned:
      return "the process that started this one has ended";
    case EndWish::none:
      break;
  }
  return "not all have come";
}

}  // namespace

CallGuard::CallGuard(const MpiOptions& options, LaunchedRanks& ranks, std::string doing)
    : options_(options), ranks_(ranks), doing_(std::move(doing)) {
  // Without anybody to tell, a thread could do nothing with what it finds.
  if (options.last_word) thread_ = std::thread([this] { run(); });
}

CallGuard::~CallGuard() {
  // Joined before the guard goes, so no last word comes after the call has returned.
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

// The ranks that are missing say more than the wish of a launcher, who has missed them as well.
Error CallGuard::error_of(EndWish wish, double waited_s) const {
  std::string why = was_stopped_ ? "this rank was stopped meanwhile; " : "";
  for (const auto& [rank, wrong] : ranks_.missing()) why += wrong + "; ";
  why += what_happened(wish);
  const bool is_certain = ranks_.missing().size() == 1 && !was_stopped_;
  if (ranks_.rank() < 0) {
    return Error(ErrorKind::environment,
                 {.where = "MPI", .expected = "to " + doing_, .actual = why});
  }
  return RankError({.rank = ranks_.rank(),
                    .suspect = is_certain ? ranks_.missing().begin()->first : kNobody,
                    .operation = doing_,
                    .reason = why,
                    .elapsed_s = waited_s});
}

void CallGuard::run() {
  constexpr std::chrono::milliseconds kLook{10}, kRound{200}, kAway{500};
  const auto begin = Clock::now();
  // A user's timeout is for steps; bringing thousands of processes up may take longer than one.
  auto deadline = begin + duration_of(std::max(options_.timeout_s, kLeastToCall));
  auto soon = begin + duration_of(options_.timeout_s + kGraceSeconds);
  Clock::time_point look_at = begin, beat = begin;
  int continued = continuations();
  EndWish wish = EndWish::none;
  std::unique_lock lock(mutex_);
  // Looks at the clock and at signals every few milliseconds; the call
  // itself cannot be interrupted.
  while (!end_.wait_for(lock, kLook, [this] { return ended_; })) {
    const auto now = Clock::now();
    const bool is_away = now - beat > kAway;
    if (is_away) end_.wait_for(lock, kLook, [] { return false; });  // for the handler of SIGCONT
    const bool is_back = is_away && continued != continuations();
    continued = continuations();
    beat = now;
    if (is_back) {  // its deadline was not of time that it had
      was_stopped_ = true;
      deadline = std::max(deadline, now + kStillToReturn);
      soon = std::max(soon, now + kStillToReturn);
    }
    const bool is_new = wish == EndWish::none && end_wish() != EndWish::none;
    // Asked to end: soon, but not at once, as the call may be about to return.
    if (is_new) deadline = std::min(deadline, now + kStillToReturn);
    wish = end_wish();
    if (is_new || now >= look_at) {
      ranks_.look();
      look_at = now + kRound;
    }
    const bool is_missed = now >= soon && !ranks_.missing().empty();
    if (now < deadline && !is_missed) continue;
    // Said while the call still hangs: the callee ends the process, as MPI cannot be told to.
    const std::chrono::duration<double> waited = now - begin;
    const Error error = error_of(wish, waited.count());
    return options_.last_word(error);
  }
}

}  // namespace ringlab::mpi
