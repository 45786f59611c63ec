// The work behind `ringlab verify`: subjects on one input, then under the laws.
#pragma once

#include <vector>

#include "cli/problem_options.h"
#include "cli/report/page.h"

namespace ringlab::cli {

struct VerifyPlan {
  std::vector<verify::Subject> subjects;
  verify::VerifyOptions laws;
  std::int64_t sampled_rows = 256;
};

/// On the input one subject after the other, so that times mean something; under the laws several
/// at a time, one per processor thread. Shows its progress.
std::vector<report::SubjectResult> verify_subjects(const VerifyPlan& plan,
                                                   const LoadedInput& loaded,
                                                   const RunOptions& options);

/// `count` query rows of `tokens`, ascending: the first, the last, and one drawn from each of
/// count - 2 equal parts between. Empty, which means all, when there are no more than `count`.
std::vector<std::int64_t> sample_rows(std::int64_t tokens, std::int64_t count, std::uint64_t seed);

}  // namespace ringlab::cli
