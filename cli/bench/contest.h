// Subjects on one problem in turn: their times, traffic and errors.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/line/spread.h"
#include "cli/report/totals.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// One subject with its options at one size.
struct Contender {
  const verify::Subject& subject;
  RunOptions options;
};

/// Figures of one subject at one size.
struct BenchLine {
  Spread seconds;           ///< of the slowest rank, sharding and gathering excluded
  Spread ratio;             ///< seconds over those of the first subject in the same round
  double flops = 0;         ///< of the pairs that the mask shows, by definition of the problem
  report::RunTotals moved;  ///< bytes sent, and held
  double worst = 0;         ///< largest error over its bound
  bool right = true;
  bool open = false;  ///< not right only because zeros would lie within its bounds, too
};

/// Runs all contenders once unmeasured, then once in each of `rounds` rounds, another one first
/// each time, and checks the last result of each: some rows of o and lse, and sums of gradients
/// over all tokens. `progress` is called with the number of runs so far. Input error for a problem
/// that a contender refuses.
std::vector<BenchLine> contest(const LoadedInput& loaded, const std::vector<Contender>& contenders,
                               int rounds, const std::function<void(int)>& progress);

}  // namespace ringlab::cli
