#include "cli/line/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringlab::cli {
namespace {

/// Linear interpolation between order statistics.
double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {percentile(values, 0.5), percentile(values, 0.1), percentile(values, 0.9)};
}

std::string spread_text(const Spread& spread, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", spread.median, digits, spread.p10, digits,
                     spread.p90, digits);
}

Json spread_json(const Spread& spread) {
  return {{"median", json_number(spread.median)},
          {"p10", json_number(spread.p10)},
          {"p90", json_number(spread.p90)}};
}

}  // namespace ringlab::cli
