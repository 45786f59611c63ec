// Runs one law on case after case, counts the outcomes and remembers the last failure.
//
// Searches differ in how they draw and shrink cases; their results add up here, so that verdicts do
// not depend on the search.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "property_tests/sha256.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

/// Limits of shrinking one failure. Laws with costly cases have fewer tries, down to
/// kFewShrinkTries.
inline constexpr int kMostShrinkTries = 600, kFewShrinkTries = 20;

/// Time in runs of a law, with an answer and without one apart: a subject that hangs takes its
/// deadline every time, which leaves no less time to the others on a busy machine.
struct RunTime {
  std::chrono::steady_clock::duration answered{}, silent{};
  bool is_beyond(const RunTime& most) const {
    return answered > most.answered || silent > most.silent;
  }
};
/// The discarded cases per requested case after which a law gives up.
inline constexpr int kDiscardsPerCase = 10;

/// The reason given for a law that was skipped for want of time.
inline constexpr const char* kNoTime = "no time was left";

class CaseRunner {
 public:
  /// Returns true when no time is left; may be empty.
  using IsOver = std::function<bool()>;

  /// Writes to `verdict`, which is that of a law that applies to the subject.
  CaseRunner(const Subject& subject, const Law& law, LawVerdict& verdict);

  /// Runs the law. Until the first failure cases are counted; from then on each failing case takes
  /// the place of the one before.
  LawResult run(const Case& c);
  /// Counts a try to make the failing case simpler; true when the tries or the time are used up.
  bool shrunk_enough();
  /// Completes the verdict after the last case. A failing case is run again, and 50 times where it
  /// does not fail each time. A case that only took too long, once, breaks no law.
  void conclude(const IsOver& is_over = {});

 private:
  void count_held(const Case& c, const LawResult& result);
  void remember(const Case& c, const LawResult& result);
  void run_again(const IsOver& is_over);
  void excuse_lateness();

  Recorder recorder_;
  const Law& law_;
  LawVerdict& verdict_;
  Sha256 tried_;
  std::string last_discard_;
  std::optional<LawFailure> first_failure_;
  int shrink_tries_ = 0;
  RunTime shrinking_;
};

/// Runs the case of `failure` again until it is clear whether it always breaks the law: three
/// times, and 50 times where one of those runs held. Ends early after a minute, after ten seconds of
/// runs without an answer, when `is_over`, and once a plugin is no longer called because it has cost
/// too much time. An empty message becomes that of the first run that broke the law.
LawFailure repeated_failure(const Subject& subject, const Law& law, LawFailure failure,
                            const CaseRunner::IsOver& is_over = {});

struct ReplayRuns {
  int all = 1, broken = 0;
};
/// Runs a replayed case that held as often as repeated_failure() does, for tokens are of cases that
/// failed once. The result is broken when any of these runs broke the law.
ReplayRuns look_harder(Replay& again);

}  // namespace ringlab::verify
