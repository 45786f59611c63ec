// The work behind `ringlab verify`: subjects on one input, then under the laws.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/report/page.h"

namespace ringlab::cli {

struct VerifyPlan {
  std::vector<verify::Subject> subjects;
  verify::VerifyOptions laws;
  std::int64_t sampled_rows = 256;
  std::int64_t rounds = 1;  ///< under the laws, at most
  /// How long new cases may begin; without it all rounds are done.
  std::optional<double> seconds = {};
};

struct VerifyOutcome {
  std::vector<report::SubjectResult> subjects;
  double laws_seconds = 0;   ///< on the clock
  bool interrupted = false;  ///< by Ctrl-C, which a plan with `seconds` takes as a wish
};

/// On the input one subject after the other, so that times mean something; under the laws as of
/// verify_in_rounds(), with a thread per processor thread. Shows its progress.
VerifyOutcome verify_subjects(const VerifyPlan& plan, const LoadedInput& loaded,
                              const RunOptions& options);

/// `count` query rows of `tokens`, ascending: the first, the last, and one drawn from each of
/// count - 2 equal parts between. Empty, which means all, when there are no more than `count`.
std::vector<std::int64_t> sample_rows(std::int64_t tokens, std::int64_t count, std::uint64_t seed);

}  // namespace ringlab::cli
