#include "cli/report/human.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <regex>

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

std::string human_finding(const std::string& words) {
  static const std::regex finding(R"((got )(\S+)(, exact )(\S+)(, allowed )([^\s,]+))");
  std::smatch found;
  if (!std::regex_search(words, found, finding)) return words;
  const auto short_of = [](const std::string& number, int digits) {
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    return *end == '\0' ? fmt::format("{:.{}g}", value, digits) : number;
  };
  constexpr int kFewDigits = 6, kAllDigits = 17;
  int digits = kFewDigits;
  while (digits < kAllDigits && short_of(found[2], digits) == short_of(found[4], digits)) ++digits;
  return fmt::format("{}got {}, exact {}, allowed {}{}", found.prefix().str(),
                     short_of(found[2], digits), short_of(found[4], digits), short_of(found[6], 3),
                     found.suffix().str());
}

}  // namespace ringlab::report
