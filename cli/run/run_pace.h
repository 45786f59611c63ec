// Stragglers and slow links of a run, as `ringlab run` prints them.
#pragma once

#include <vector>

#include "cli/line/output.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// simulated: ranks take turns, so what they wait for says nothing about a link.
enum class WaitsAre { measured, simulated };

/// Prints a line for a straggler and one for a slow link, where there are any, and returns
/// step_seconds, heard_step_seconds, straggler, links and slow_link for the JSON document.
Json print_pace(const std::vector<RankStats>& ranks, double seconds, WaitsAre waits,
                Output& output);

}  // namespace ringlab::cli
