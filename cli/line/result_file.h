// --output of one process: results with the dimensions that the inputs had.
#pragma once

#include <optional>
#include <string>

#include "cli/inputs/problem_options.h"
#include "reference/core/run.h"

namespace ringlab::cli {

struct Results {
  const AttentionOutput& output;
  const std::optional<AttentionGradients>& gradients;
};
/// o, lse and, where they are, dq, dk and dv, in the problem's dtype (lse in f32, or f64 for f64).
void write_results(const std::string& path, const LoadedInput& loaded, const Results& results);

}  // namespace ringlab::cli
