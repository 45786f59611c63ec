// Bytes that a run of the engine should move and hold by its closed forms, next to the measured
// ones and the system's.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/line/output.h"
#include "optimized/ring/closed_forms.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// A run's problem and options, which determine its costs, and the measured figures.
struct RunAccount {
  const Problem& problem;
  const RunOptions& options;
  Pass last_pass;
  std::vector<const RankStats*> measured;
};

/// Rows of q, k, v (and do) that a rank was given, and of o, lse (and dq, dk, dv) that it gives, in
/// bytes of the problem's dtype.
struct Given {
  std::int64_t inputs = 0, outputs = 0;
};
Given given_bytes(const RunAccount& account, int rank);

/// Prints one line: that all is as computed, or the first figure that is not. Adds to each object
/// of document["ranks"]: expected_… of bytes, messages and peaks; input_bytes and output_bytes, in
/// the problem's dtype, which peak_bytes does not count; memory_bytes, the sum of these two and
/// peak_bytes. Adds to `document`: "wire" (format, integrity, bytes and messages of all ranks,
/// measured and expected) and "as_expected".
void report_costs(const RunAccount& account, Json& document, Output& output);

/// report_costs() for the costs that a subject states, which are fewer: sent bytes and messages,
/// and K/V held; exchanges and messages to other nodes where it states them. For forward passes.
void report_stated_costs(const verify::Subject& subject, const RunAccount& account, Json& document,
                         Output& output);

/// Environment error when a run, or the `check_bytes` of a check of some rows after it (0 without
/// one), does not fit into memory. Measured figures are not looked at.
void check_run_fits_memory(const RunAccount& account, std::int64_t check_bytes);

/// Prints what all ranks hold by the closed forms, inputs and outputs included, and the largest
/// resident set of this process so far; adds them to `document` with their ratio:
/// expected_memory_bytes, peak_resident_bytes, resident_ratio.
void report_memory(const RunAccount& account, Json& document, Output& output);

}  // namespace ringlab::cli
