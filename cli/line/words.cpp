#include "cli/line/words.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

// The whole of `text` as a Number; false when any of it is left over or it does not fit.
template <class Number>
bool read_whole(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

[[noreturn]] void refuse(const std::string& option, const std::string& expected,
                         const std::string& text) {
  throw_usage_error({"--" + option, expected, fmt::format("\"{}\"", text), ""});
}

}  // namespace

std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least,
                           std::int64_t most) {
  std::int64_t number = 0;
  if (!read_whole(text, number) || number < least || number > most) {
    refuse(option, fmt::format("an integer from {} to {}", least, most), text);
  }
  return number;
}

std::uint64_t parse_unsigned(const std::string& option, const std::string& text) {
  std::uint64_t number = 0;
  if (!read_whole(text, number)) {
    refuse(option, fmt::format("an integer from 0 to {}", UINT64_MAX), text);
  }
  return number;
}

double parse_real(const std::string& option, const std::string& text, double least, double most) {
  double number = 0;
  if (!read_whole(text, number) || !std::isfinite(number) || number < least || number > most) {
    const bool any = least == std::numeric_limits<double>::lowest();
    const std::string range = any ? "" : fmt::format(" from {:g} to {:g}", least, most);
    refuse(option, "a finite number" + range, text);
  }
  return number;
}

}  // namespace ringlab::cli
