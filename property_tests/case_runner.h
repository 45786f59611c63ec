// One law on case after case: what came of each is counted, and the last failure is remembered.
//
// Searches differ in how they draw and shrink; what they find adds up here, so that verdicts do not
// depend on who searches.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "property_tests/sha256.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

/// A failing case is made simpler so often; cases that cost more, less often.
inline constexpr int kMostShrinkTries = 600, kFewShrinkTries = 20;

/// Time in runs of a law, of those with an answer and of those without apart: what hangs takes its
/// deadline every time, and shall not leave less time to the others on a busy machine.
struct RunTime {
  std::chrono::steady_clock::duration answered{}, silent{};
  bool is_beyond(const RunTime& most) const {
    return answered > most.answered || silent > most.silent;
  }
};

/// A law gives up after so many discarded cases for one that was asked for.
inline constexpr int kDiscardsPerCase = 10;

/// Why a law was skipped that there was no time for.
inline constexpr const char* kNoTime = "no time was left";

class CaseRunner {
 public:
  /// Whether there is no time for more; may be empty.
  using IsOver = std::function<bool()>;

  /// Writes to `verdict`, which is that of a law that applies to the subject.
  CaseRunner(const Subject& subject, const Law& law, LawVerdict& verdict);

  /// Runs the law. Until the first failure cases are counted; from then on each failing case takes
  /// the place of the one before.
  LawResult run(const Case& c);
  /// Whether enough was tried to make the failing case simpler; asked once per try.
  bool shrunk_enough();
  /// What remains to be said when all cases were tried. A failing case is run again, and 50 times
  /// where it does not fail each time. One that only took too long, once, breaks no law.
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
/// times, and 50 times where one of those held. Ends early after a minute, after ten seconds of
/// runs without an answer, and when `is_over`. A message that is empty becomes that of the first
/// run that broke it. A subject that is no longer called, for the time it has cost, is not asked
/// either.
LawFailure repeated_failure(const Subject& subject, const Law& law, LawFailure failure,
                            const CaseRunner::IsOver& is_over = {});

struct ReplayRuns {
  int all = 1, broken = 0;
};
/// Runs a case that held again, as often as a failure: a token is that of a case that failed once.
/// It is broken then if it was broken in any of these runs.
ReplayRuns look_harder(Replay& again);

}  // namespace ringlab::verify
