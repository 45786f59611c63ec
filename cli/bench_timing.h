// Timing contenders against each other: in turn, in one process, as medians and ratios.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ringlab::cli {

/// One way of doing the work that is compared.
struct Contender {
  std::string name;
  std::function<void()> work;
  /// In the place of `work`, for what knows better than the wall clock how many seconds it took.
  std::function<double()> timed_work = {};
};

/// Median, and the 10th and 90th percentile, of repeated measurements.
struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

struct Timing {
  std::string name;
  Spread seconds;
  Spread ratio;  ///< time over the first contender's, round by round
};

struct TimingOptions {
  int rounds = 11;  ///< every contender once per round, A B C A B C …
  std::function<void(int done, int total)> progress = {};
};

/// Runs every contender once unmeasured, then `rounds` times in turn. Ratios are taken within a
/// round, so that a machine that changes its speed changes both sides.
std::vector<Timing> time_in_turn(const std::vector<Contender>& contenders,
                                 const TimingOptions& options);

}  // namespace ringlab::cli
