#include "property_tests/rounds.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>

#include "property_tests/sha256.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab::verify {
namespace {

using RoundsClock = std::chrono::steady_clock;

/// The most laws broken by crashes whose cases are made simpler and tried again.
constexpr int kCrashesLookedInto = 3;

double seconds_since(RoundsClock::time_point start) {
  return std::chrono::duration<double>(RoundsClock::now() - start).count();
}

/// A law of a subject over the rounds.
struct LawTurns {
  const Law* law;
  LawVerdict verdict;
  std::int64_t whole_rounds = 0;
  bool is_at_work = false;
  bool is_done = false;  ///< broken, or does not apply
};

/// A subject, its laws, and the number of its turns.
struct SubjectTurns {
  const Subject* subject;
  std::vector<LawTurns> laws;
  int crashes = 0;       ///< laws that crashes broke
  std::size_t next = 0;  ///< turns given, over all rounds
  int at_work = 0;
  double spent_s = 0;  ///< by its laws, over all threads
  double turn_s = 0;   ///< time of its last turn, taken as that of turns at work

  /// The turn at hand, once laws that are done are passed over; nothing where all rounds are given.
  LawTurns* next_law(std::int64_t rounds) {
    // Laws that broke or do not apply are passed over; the other laws get their time.
    for (std::size_t passed = 0; passed < laws.size(); ++passed, ++next) {
      if (static_cast<std::int64_t>(next / laws.size()) >= rounds) return nullptr;
      LawTurns& law = laws[next % laws.size()];
      if (!law.is_done) return &law;
    }
    return nullptr;
  }
  double share() const { return spent_s + at_work * turn_s; }
};

struct Turn {
  SubjectTurns* subject;
  LawTurns* law;
  std::uint64_t round;
  bool knows_crashes;  ///< no more crashes are made simpler: each try takes a process
};

class Rounds {
 public:
  Rounds(const std::vector<Subject>& subjects, const RoundsOptions& options,
         RoundsProgress& progress)
      : options_(options), progress_(progress) {
    for (const Subject& subject : subjects) {
      SubjectTurns turns{.subject = &subject, .laws = {}};
      for (const Law* law : laws_for(subject, options.laws)) {
        turns.laws.push_back({.law = law, .verdict = unheard(*law)});
      }
      subjects_.push_back(std::move(turns));
    }
  }

  std::vector<SubjectRounds> run() {
    // Starts as many workers as threads, each taking turns until there are none.
    parallel_rows(options_.threads, options_.threads,
                  [this] { return [this](std::int64_t) { work(); }; });
    if (failure_) std::rethrow_exception(failure_);
    std::vector<SubjectRounds> results;
    for (SubjectTurns& subject : subjects_) results.push_back(result_of(subject));
    return results;
  }

 private:
  Haste haste() const {
    // An error of the verifier itself ends the run at once, time that is
    // up after the cases at hand.
    if (failed_ || (options_.interrupted && options_.interrupted())) return Haste::at_once;
    return seconds_since(start_) >= options_.seconds ? Haste::no_new_cases : Haste::none;
  }

  void work() {
    try {
      while (const std::optional<Turn> turn = take_turn()) give_turn(*turn);
    } catch (...) {
      // The first error is told; the others stop waiting and see that it has failed.
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
      turn_is_over_.notify_all();
    }
  }

  /// Waits for a turn that can be given; nothing when there will be none.
  std::optional<Turn> take_turn() {
    std::unique_lock lock(mutex_);
    while (haste() == Haste::none) {
      if (const std::optional<Turn> turn = best_turn()) {
        turn->law->is_at_work = true;
        ++turn->subject->at_work;
        ++turn->subject->next;
        return turn;
      }
      // Nothing to do now and nobody at work: no turn will ever come. Else one
      // may, when its law is free.
      if (!is_anyone_at_work()) break;
      turn_is_over_.wait(lock);
    }
    return std::nullopt;
  }

  // The subject that has had least time so far, running turns counted as long as their last one: so
  // each gets an equal share, however slow it is.
  std::optional<Turn> best_turn() {
    std::optional<Turn> best;
    for (SubjectTurns& subject : subjects_) {
      LawTurns* law = subject.next_law(options_.rounds);
      const bool is_busy =
          // Foreign code runs one case at a time: nobody promised that it may be entered twice.
          law &&
          (law->is_at_work || (subject.subject->can.has(Ability::foreign) && subject.at_work > 0));
      if (!law || is_busy || (best && best->subject->share() <= subject.share())) continue;
      // The round that this turn belongs to.
      best = Turn{.subject = &subject,
                  .law = law,
                  .round = subject.next / subject.laws.size(),
                  .knows_crashes = subject.crashes >= kCrashesLookedInto};
    }
    return best;
  }

  bool is_anyone_at_work() const {
    return std::any_of(subjects_.begin(), subjects_.end(),
                       [](const SubjectTurns& subject) { return subject.at_work > 0; });
  }

  void give_turn(const Turn& turn) {
    VerifyOptions options = options_.laws;
    options.round = turn.round;
    options.progress = {};
    options.shrink = options.shrink && !turn.knows_crashes;
    options.haste = [this] {
      const Haste now = haste();
      progress_.cases += now == Haste::none;  // counts cases that are begun while there is time
      return now;
    };
    progress_.set_at_work(turn.subject->subject->name + " " + turn.law->law->id);
    const auto begin = RoundsClock::now();
    const LawVerdict found = verify_law(*turn.subject->subject, *turn.law->law, options);
    // A turn that was cut short is no whole round of its law.
    const bool was_whole = haste() == Haste::none;
    const std::lock_guard lock(mutex_);
    turn.subject->turn_s = seconds_since(begin);
    turn.subject->spent_s += turn.subject->turn_s;
    note(turn, found, was_whole);
    turn_is_over_.notify_all();
  }

  void note(const Turn& turn, const LawVerdict& found, bool was_whole) {
    LawTurns& law = *turn.law;
    --turn.subject->at_work;
    law.is_at_work = false;
    add_round(law.verdict, found);
    law.whole_rounds += was_whole;
    // A law does not apply when no case of a whole round fits the subject.
    const bool does_not_apply = found.cases == 0 && found.discarded == 0 && was_whole;
    law.is_done = law.verdict.failure || does_not_apply;
    progress_.broken += found.failure.has_value();
    turn.subject->crashes += found.failure && found.failure->ending == Ending::crashed;
    ++progress_.turns;
  }

  static SubjectRounds result_of(SubjectTurns& subject) {
    SubjectRounds result;
    result.verdict.subject = subject.subject->name;
    result.verdict.seconds = subject.spent_s;
    for (const LawTurns& law : subject.laws) {
      result.whole_rounds = std::max(result.whole_rounds, law.whole_rounds);
    }
    for (LawTurns& law : subject.laws) {
      // Laws that are done cannot hold up the count: it is the least of those that go on.
      if (!law.is_done) result.whole_rounds = std::min(result.whole_rounds, law.whole_rounds);
      result.verdict.laws.push_back(std::move(law.verdict));
    }
    return result;
  }

  const RoundsOptions& options_;
  RoundsProgress& progress_;
  const RoundsClock::time_point start_ = RoundsClock::now();
  std::mutex mutex_;
  std::condition_variable turn_is_over_;
  std::vector<SubjectTurns> subjects_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void add_round(LawVerdict& total, const LawVerdict& round) {
  total.cases += round.cases;
  total.discarded += round.discarded;
  total.refused += round.refused;
  total.tried.add(round.tried);
  total.open.add(round.open);
  total.bounds.add(round.bounds);
  if (round.worst_ratio > total.worst_ratio) {
    total.worst_ratio = round.worst_ratio;
    total.worst_at = round.worst_at;
  }
  for (const auto& [name, count] : round.classes) total.classes[name] += count;
  // Laws are not asked again once they broke, so this is the last word.
  total.failure = round.failure;
  if (total.late.empty()) total.late = round.late;
  const bool was_tried = !round.case_digest.empty();
  if (total.case_digest.empty()) {
    total.skipped = round.skipped;
    total.case_digest = round.case_digest;
    return;
  }
  // The digest of digests: the same rounds of the same cases give the same one.
  if (was_tried) total.case_digest = sha256(total.case_digest + round.case_digest);
  if (total.cases > 0 || total.failure) total.skipped.clear();
  if (total.is_unbounded()) total.skipped = kUnbounded;
}

std::vector<SubjectRounds> verify_in_rounds(const std::vector<Subject>& subjects,
                                            const RoundsOptions& options,
                                            RoundsProgress& progress) {
  return Rounds(subjects, options, progress).run();
}

}  // namespace ringlab::verify
