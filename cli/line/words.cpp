#include "cli/line/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
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

namespace {

// Levenshtein distance, one row at a time.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // longer ones are no typos, and cost time
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  if (word.empty() || word.size() > kLongestWord) return best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : fmt::format("Did you mean {}?", best);
}

}  // namespace ringlab::cli
