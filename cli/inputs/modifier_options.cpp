#include "cli/inputs/modifier_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/inputs/run_options.h"
#include "cli/line/words.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

std::vector<double> take_list(Arguments& arguments, const std::string& name) {
  const RunOption& option = run_option(name);
  std::vector<double> numbers;
  for (const std::string& word : arguments.take_words(name)) {
    numbers.push_back(parse_real(name, word, option.least, option.most));
  }
  return numbers;
}

/// Usage error, before any head is known, when check_modifiers() would refuse these numbers.
void check_numbers(const Modifiers& modifiers) {
  const auto check = [](const char* option, const Modifiers& one, std::size_t heads) {
    Shape shape;
    shape.q_heads = static_cast<std::int64_t>(std::max<std::size_t>(heads, 1));
    try {
      check_modifiers(one, shape);
    } catch (const Error& error) {
      throw_usage_error({option, error.parts().expected, error.parts().actual, ""});
    }
  };
  check("--softcap", {.softcap = modifiers.softcap}, 1);
  check("--alibi", {.alibi_slopes = modifiers.alibi_slopes}, modifiers.alibi_slopes.size());
  check("--sinks", {.sinks = modifiers.sinks}, modifiers.sinks.size());
  check("--dropout", {.dropout = modifiers.dropout}, 1);
}

void spread(const char* option, std::vector<double>& numbers, std::int64_t heads) {
  if (numbers.size() == 1) numbers.assign(static_cast<std::size_t>(heads), numbers.front());
  if (numbers.empty() || static_cast<std::int64_t>(numbers.size()) == heads) return;
  throw_usage_error({option, fmt::format("one number, or one for each of {} query heads", heads),
                     fmt::format("{} numbers", numbers.size()), ""});
}

}  // namespace

ModifierWish take_modifiers(Arguments& arguments) {
  ModifierWish wish;
  wish.given.softcap = take_number(arguments, "softcap", 0);
  wish.default_slopes = arguments.given("alibi") && *arguments.take_text("alibi") == "default";
  if (!wish.default_slopes) wish.given.alibi_slopes = take_list(arguments, "alibi");
  wish.given.sinks = take_list(arguments, "sinks");
  wish.given.dropout = take_number(arguments, "dropout", 0);
  if (wish.given.dropout > 0) wish.given.dropout_seed = arguments.take_unsigned("dropout-seed", 1);
  check_numbers(wish.given);
  return wish;
}

Modifiers modifiers_for(const ModifierWish& wish, std::int64_t q_heads) {
  Modifiers modifiers = wish.given;
  if (wish.default_slopes) modifiers.alibi_slopes = default_alibi_slopes(q_heads);
  spread("--alibi", modifiers.alibi_slopes, q_heads);
  spread("--sinks", modifiers.sinks, q_heads);
  return modifiers;
}

}  // namespace ringlab::cli
