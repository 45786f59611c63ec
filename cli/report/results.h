// The results of `ringlab verify`: of each subject on the given input and under the laws.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "property_tests/coverage.h"
#include "property_tests/diagnosis/insight.h"
#include "property_tests/verify.h"
#include "reference/core/run.h"

namespace ringlab::report {

/// One subject on the given input and under the laws.
struct SubjectResult {
  verify::Subject subject;
  NumericsProfile profile;  ///< what it promises for this problem
  verify::InputVerdict on_input;
  std::string input_skipped;   ///< why it was not run on the input; empty when it was
  bool refuses_input = false;  ///< skipped for what the problem needs, not for where it runs
  verify::SubjectVerdict laws;
  std::int64_t rounds = 0;  ///< whole ones, under the laws
  verify::Coverage coverage;
  verify::Insight insight;
  /// Reasons why the subject does not pass without being wrong: checks wanted and not made.
  std::vector<std::string> gaps = {};

  bool input_passed() const;  ///< false when skipped, thrown, outside a bound, or unbounded
  bool input_wrong() const;   ///< thrown, or outside a bound
  bool input_is_unbounded()
      const;             ///< inside bounds of which some are so wide that zeros would pass
  bool wrong() const;    ///< failed on the input, or broke a law
  bool checked() const;  ///< was compared on the input, or a law held
  bool passed() const { return checked() && !wrong() && gaps.empty(); }
  std::string verdict() const;  ///< "pass", "wrong" or "not checked"
  /// Largest error / bound of the laws that held, +inf when one was broken.
  double worst_law_ratio() const;
  double worst_ratio() const;  ///< largest error / bound, on the input and under the laws
  int laws_held() const;
  int laws_broken() const;
  int laws_without_cases() const;  ///< ran, but every case was discarded: says nothing
  /// Numbers whose bounds are as wide as the answer, and numbers compared with bounds, in all.
  verify::BoundCounts bounds() const;
  /// The two ratios for tables: a number, or "skipped", "failed", "2 broken".
  std::string input_text() const;
  std::string laws_text() const;
  std::int64_t sent_bytes() const;  ///< over all ranks
  std::int64_t peak_bytes() const;  ///< of the rank that holds most
  std::int64_t peak_kv_bytes() const;
};

struct VerifyRun {
  std::vector<std::pair<std::string, std::string>> configuration;
  std::vector<std::string> notes;
  std::string version, compiler, flags;
  Problem problem;
  RunOptions options;
  std::vector<SubjectResult> subjects;
  double seconds = 0;
  /// The end of a run that the clock or Ctrl-C ended: "stopped after 12 s".
  std::string ended = {};
  bool passed() const;
  /// "SUBJECT: CLASS", the classes of cases that were tried too rarely.
  std::vector<std::string> uncovered() const;
};

}  // namespace ringlab::report
