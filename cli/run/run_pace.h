// Who held a run up, as `ringlab run` says it.
#pragma once

#include <vector>

#include "cli/line/output.h"
#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// What a rank tells about its pace.
struct RankPace {
  std::vector<double> heard_step_s;  ///< of every rank; empty when nothing was measured
  double busy_s = 0;
  double pairs_per_step = 1;
  std::vector<LinkStats> links;
};
RankPace pace_of(const RankStats& stats);

/// All paces on rank 0, nothing elsewhere. Every rank calls it, with what pace_of gave.
std::vector<RankPace> gather_paces(const RankPace& mine, Communicator& network);

/// simulated: ranks take turns, so what they wait for says nothing about a link.
enum class WaitsAre { measured, simulated };

/// Prints a line for a straggler and one for a slow link, where there are any, and returns
/// step_seconds, heard_step_seconds, straggler, links and slow_link for the JSON document.
Json print_pace(const std::vector<RankPace>& ranks, double seconds, WaitsAre waits, Output& output);

}  // namespace ringlab::cli
