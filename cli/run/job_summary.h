// What rank 0 is told by every rank of a job at its end, and prints.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/line/output.h"
#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::cli {

struct RankSummary {
  RankStats stats;
  double seconds = 0;
  double worst = 0;           ///< error/bound, when checked
  std::int64_t compared = 0;  ///< values, when checked
  bool right = true;
  double clock_uncertainty_s = 0;  ///< when traced
};

/// All summaries on rank 0, nothing elsewhere. To be called by all ranks.
std::vector<RankSummary> gather(const RankSummary& mine, Communicator& network);

/// Whether every rank is right, and what rank 0 found besides, as rank 0, which has all summaries,
/// tells the others. `found_right` counts on rank 0 only.
bool agree_on_outcome(const std::vector<RankSummary>& all, bool found_right, Communicator& network);

/// The table of the ranks, and the same as an array.
Json print_summaries(const std::vector<RankSummary>& all, bool checked, Output& output);

}  // namespace ringlab::cli
