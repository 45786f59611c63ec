#include "cli/bench/sizes.h"

#include <fmt/format.h>

#include <array>
#include <regex>
#include <string>

#include "cli/line/words.h"
#include "reference/core/error.h"
#include "reference/core/options/option_table.h"

namespace ringlab::cli {
namespace {

constexpr std::size_t kMostSizes = 1000;

struct SizeOption {
  const char *name, *value, *help, *otherwise;
};
/// The size that varies last comes first.
constexpr std::array<SizeOption, 4> kSizeOptions = {
    {{"heads", "H", "query heads", "4"},
     {"head-dim", "D", "channels per head", "64"},
     {"ranks", "P", "ranks that share the tokens", "4"},
     {"tokens", "N", "tokens, the length of the sequence", "1024:8192:x2"}}};

[[noreturn]] void refuse_count(const std::string& name) {
  throw_usage_error({"--" + name, fmt::format("at most {} sizes", kMostSizes), "more of them", ""});
}

/// Appends a number, or the numbers of a range.
void append(const std::string& name, const std::string& word, std::vector<std::int64_t>& values) {
  static const std::regex range("([0-9]+):([0-9]+):([x+])([0-9]+)");
  const RunOption& row = run_option(name);
  const auto number = [&](const std::string& text, std::int64_t least) {
    return parse_integer(name, text, least, static_cast<std::int64_t>(row.most));
  };
  std::smatch parts;
  if (!std::regex_match(word, parts, range)) {
    if (word.find(':') == std::string::npos) return values.push_back(number(word, 1));
    throw_usage_error({"--" + name, "numbers, or FIRST:LAST:xFACTOR, or FIRST:LAST:+STEP",
                       fmt::format("\"{}\"", word), "For example 4096:65536:x2."});
  }
  const bool multiplies = parts[3] == "x";
  const std::int64_t first = number(parts[1], 1), last = number(parts[2], first);
  const std::int64_t step = number(parts[4], multiplies ? 2 : 1);
  for (std::int64_t value = first; value <= last;) {
    if (values.size() == kMostSizes) refuse_count(name);
    values.push_back(value);
    if (multiplies && value > last / step) break;  // the product may have no room
    value = multiplies ? value * step : value + step;
  }
}

std::vector<std::int64_t> values_of(const std::string& name, const std::string& text) {
  std::vector<std::int64_t> values;
  for (const std::string& word : words_between_commas(text)) append(name, word, values);
  return values;
}

}  // namespace

std::vector<OptionSpec> size_options() {
  std::vector<OptionSpec> options;
  for (const SizeOption& size : kSizeOptions) {
    options.push_back({size.name, fmt::format("{0},{0}...", size.value),
                       fmt::format("{} ({})", size.help, size.otherwise)});
  }
  return options;
}

std::vector<Arguments> at_every_size(const Arguments& arguments) {
  std::vector<Arguments> sizes = {arguments};
  for (const SizeOption& size : kSizeOptions) {
    const std::string text =
        arguments.given(size.name) ? arguments.text(size.name) : size.otherwise;
    const std::vector<std::int64_t> values = values_of(size.name, text);
    if (sizes.size() * values.size() > kMostSizes) refuse_count(size.name);
    std::vector<Arguments> product;
    for (const Arguments& one : sizes) {
      for (const std::int64_t value : values) {
        product.push_back(one.with(size.name, fmt::format("{}", value)));
      }
    }
    sizes = std::move(product);
  }
  return sizes;
}

}  // namespace ringlab::cli
