// What a run holds by its closed forms, next to what the system saw.
#pragma once

#include <cstdint>

#include "cli/line/output.h"
#include "cli/run/run_costs.h"

namespace ringlab::cli {

/// Bytes of inputs, outputs and all that the engine holds, over all ranks, as the closed forms have
/// it. `account.measured` is not looked at.
std::int64_t expected_memory(const RunAccount& account);

/// Environment error when `account` and what a check of some rows needs after it, 0 without one, do
/// not fit into memory.
void check_run_fits_memory(const RunAccount& account, std::int64_t check_bytes);

/// Prints expected_memory and the largest resident set of this process so far, and adds them to
/// `document` with their ratio: expected_memory_bytes, peak_resident_bytes, resident_ratio.
void report_memory(const RunAccount& account, Json& document, Output& output);

}  // namespace ringlab::cli
