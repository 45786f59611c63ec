// `ringlab run optimized`: the engine with its progress shown, on tensors or on random rows that
// each rank makes for itself.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/inputs/random_input.h"
#include "property_tests/gradient_identities.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// The engine on whole tensors.
RunResult run_engine_shown(const AttentionInput& input, const RunOptions& options);

/// The engine on random rows: nobody holds a whole tensor, and of the results only o and lse of
/// `kept_rows` (ascending) stay.
struct RowRun {
  RandomInput input;
  RunOptions options;
  Pass last_pass = Pass::forward;
  std::vector<std::int64_t> kept_rows;
  verify::GradientIdentities* identities = nullptr;  ///< is given all gradients, if there are any
};
RunResult run_random_rows(const RowRun& run);

/// `rows` (ascending) of o and lse.
AttentionOutput rows_of_output(const AttentionOutput& whole, const std::vector<std::int64_t>& rows);

}  // namespace ringlab::cli
