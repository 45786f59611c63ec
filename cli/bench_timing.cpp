#include "cli/bench_timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ringlab::cli {
namespace {

double seconds_of(const Contender& contender) {
  if (contender.timed_work) return contender.timed_work();
  const auto start = std::chrono::steady_clock::now();
  contender.work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Linear interpolation between order statistics.
double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {percentile(values, 0.5), percentile(values, 0.1), percentile(values, 0.9)};
}

}  // namespace

std::vector<Timing> time_in_turn(const std::vector<Contender>& contenders,
                                 const TimingOptions& options) {
  std::vector<std::vector<double>> seconds(contenders.size()), ratios(contenders.size());
  for (const Contender& contender : contenders) seconds_of(contender);
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      seconds[i].push_back(seconds_of(contenders[i]));
      ratios[i].push_back(seconds[i].back() / seconds[0].back());
    }
    if (options.progress) options.progress(round + 1, options.rounds);
  }
  std::vector<Timing> timings;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    timings.push_back({contenders[i].name, spread_of(seconds[i]), spread_of(ratios[i])});
  }
  return timings;
}

}  // namespace ringlab::cli
