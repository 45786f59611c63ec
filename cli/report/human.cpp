#include "cli/report/human.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace ringlab::report {

std::string human_bytes(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value,
                     std::abs(value) < 10    ? 2
                     : std::abs(value) < 100 ? 1
                                             : 0,
                     kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string human_ratio(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.3g}", ratio) : fmt::format("{}", ratio);
}

std::string human_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string human_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

}  // namespace ringlab::report
