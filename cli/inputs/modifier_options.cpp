#include "cli/inputs/modifier_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/line/numbers.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr double kMostModifier = 0x1p64;  // check_modifiers() allows no more

std::vector<double> take_list(Arguments& arguments, const std::string& name) {
  std::vector<double> numbers;
  for (const std::string& word : arguments.take_words(name)) {
    numbers.push_back(parse_real(name, word, -kMostModifier, kMostModifier));
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

std::vector<OptionSpec> options_of(ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return {{"softcap", "X", "soft-capping: scores become X tanh(score / X)"}};
    case ModifierKind::alibi:
      return {{"alibi", "S,S,…",
               "ALiBi: slope times distance taken off each score; one slope per query head, one "
               "for all, or default for the customary ones"}};
    case ModifierKind::sinks:
      return {{"sinks", "X,X,…",
               "a score without a value in every row's softmax; one per query head, or one for "
               "all"}};
    case ModifierKind::dropout:
      return {{"dropout", "P", "drop this share of the weights, scale the others by 1 / (1 - P)"},
              {"dropout-seed", "S", "which weights are dropped (1)", "with --dropout"}};
  }
  return {};
}

void spread(const char* option, std::vector<double>& numbers, std::int64_t heads) {
  if (numbers.size() == 1) numbers.assign(static_cast<std::size_t>(heads), numbers.front());
  if (numbers.empty() || static_cast<std::int64_t>(numbers.size()) == heads) return;
  throw_usage_error({option, fmt::format("one number, or one for each of {} query heads", heads),
                     fmt::format("{} numbers", numbers.size()), ""});
}

}  // namespace

std::vector<OptionSpec> modifier_options() {
  std::vector<OptionSpec> all;
  for (const ModifierKind kind : kModifierKinds) {
    for (OptionSpec& option : options_of(kind)) all.push_back(std::move(option));
  }
  return all;
}

std::string unknown_modifier(const Arguments& arguments, const verify::ModifierAbilities& can) {
  for (const ModifierKind kind : kModifierKinds) {
    for (const OptionSpec& option : options_of(kind)) {
      if (!can.knows(kind) && arguments.given(option.name)) return option.name;
    }
  }
  return "";
}

ModifierWish take_modifiers(Arguments& arguments) {
  ModifierWish wish;
  wish.given.softcap = arguments.take_real("softcap", 0, 0, kMostModifier);
  wish.default_slopes = arguments.given("alibi") && *arguments.take_text("alibi") == "default";
  if (!wish.default_slopes) wish.given.alibi_slopes = take_list(arguments, "alibi");
  wish.given.sinks = take_list(arguments, "sinks");
  wish.given.dropout = arguments.take_real("dropout", 0, 0, 1);
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

void refuse_unknown_modifiers(const Arguments& arguments, const verify::Subject& subject) {
  const std::string unknown = unknown_modifier(arguments, subject.can.modifiers);
  if (unknown.empty()) return;
  Arguments unused = arguments;  // what is no number is wrong for every subject
  take_modifiers(unused);
  throw_usage_error({"--" + unknown,
                     subject.can.modifiers.any() ? "a subject that knows this modifier"
                                                 : "a subject that modifies scores",
                     subject.name, "`ringlab list` shows what each subject can."});
}

}  // namespace ringlab::cli
