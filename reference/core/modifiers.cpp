#include "reference/core/modifiers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "reference/core/error.h"
#include "reference/core/problem.h"

namespace ringlab {
namespace {

// Limits that leave room: a slope of 2^64 times a distance of 2^63 is still finite in f32.
constexpr double kLargest = 0x1p64;
constexpr double kLeast = 0x1p-64;
constexpr double kMostDropout = 1 - 0x1p-32;  // the largest threshold below 2^32

// The shortest text that reads back as the same double: ranks compare it.
std::string number_text(double x) {
  std::array<char, 40> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), x);
  return {text.data(), error == std::errc{} ? end : text.data()};
}

std::string list_text(const std::vector<double>& numbers) {
  std::string text;
  for (const double x : numbers) text += (text.empty() ? "" : ",") + number_text(x);
  return text;
}

std::string value_text(const Modifiers& modifiers, ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return number_text(modifiers.softcap);
    case ModifierKind::alibi:
      return list_text(modifiers.alibi_slopes);
    case ModifierKind::sinks:
      return list_text(modifiers.sinks);
    case ModifierKind::dropout:
      return number_text(modifiers.dropout) + ",seed:" + std::to_string(modifiers.dropout_seed);
  }
  return "";
}

void refuse(const std::string& where, std::string expected, double found) {
  throw_input_error(
      {.where = where, .expected = std::move(expected), .actual = number_text(found)});
}

bool is_zero_or_moderate(double x) {
  return x == 0 || (std::abs(x) >= kLeast && std::abs(x) <= kLargest);
}

void check_per_head(const char* name, const std::vector<double>& numbers, std::int64_t heads) {
  if (numbers.empty() || static_cast<std::int64_t>(numbers.size()) == heads) return;
  throw_input_error(
      {.where = name,
       .expected = "one number for each of the " + std::to_string(heads) + " query heads",
       .actual = std::to_string(numbers.size())});
}

void check_dropout(const Modifiers& modifiers, const Shape& shape) {
  const double p = modifiers.dropout;
  // Written so that NaN is refused, too.
  if (!(p >= 0 && p <= kMostDropout)) refuse("dropout", "from 0 to 1 - 2^-32", p);
  if (p == 0) return;
  // Philox is given 32 bits each for batch, head and query; four keys share a block, hence 34.
  struct Limit {
    const char* name;
    std::int64_t value;
    int bits;
  };
  for (const Limit& limit : std::initializer_list<Limit>{{"batch", shape.batch, 32},
                                                         {"q_heads", shape.q_heads, 32},
                                                         {"q_tokens", shape.q_tokens, 32},
                                                         {"kv_tokens", shape.kv_tokens, 34}}) {
    if (limit.value >> limit.bits == 0) continue;
    throw_input_error({.where = std::string("dropout, ") + limit.name,
                       .expected = "fewer than 2^" + std::to_string(limit.bits) +
                                   ", which is what its generator can count",
                       .actual = std::to_string(limit.value)});
  }
}

void check_modifier(ModifierKind kind, const Modifiers& modifiers, const Shape& shape) {
  switch (kind) {
    // Zero means none; a negative cap has no meaning.
    case ModifierKind::softcap:
      if (modifiers.softcap >= 0 && is_zero_or_moderate(modifiers.softcap)) break;
      refuse("softcap", "0 (none), or from 2^-64 to 2^64", modifiers.softcap);
      break;
    case ModifierKind::alibi:
      check_per_head("ALiBi slopes", modifiers.alibi_slopes, shape.q_heads);
      for (const double slope : modifiers.alibi_slopes) {
        if (is_zero_or_moderate(slope)) continue;
        refuse("ALiBi slope", "0, or from 2^-64 to 2^64 in magnitude", slope);
      }
      break;
    case ModifierKind::sinks:
      check_per_head("sinks", modifiers.sinks, shape.q_heads);
      for (const double sink : modifiers.sinks) {
        // NaN and infinities are refused by the same comparison.
        if (!(std::abs(sink) <= kLargest)) refuse("sink", "at most 2^64 in magnitude", sink);
      }
      break;
    case ModifierKind::dropout:
      check_dropout(modifiers, shape);
      break;
  }
}

/// 2^{-8 (h + 1) / heads}.
double slope_of_power(std::int64_t head, std::int64_t heads) {
  return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
}

}  // namespace

std::string_view modifier_title(ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return "soft-capping";
    case ModifierKind::alibi:
      return "ALiBi";
    case ModifierKind::sinks:
      return "sinks";
    case ModifierKind::dropout:
      return "dropout";
  }
  return "";
}

bool Modifiers::has(ModifierKind kind) const {
  switch (kind) {
    case ModifierKind::softcap:
      return softcap != 0;
    case ModifierKind::alibi:
      return !alibi_slopes.empty();
    case ModifierKind::sinks:
      return !sinks.empty();
    case ModifierKind::dropout:
      return dropout != 0;
  }
  return false;
}

void check_modifiers(const Modifiers& modifiers, const Shape& shape) {
  for (const ModifierKind kind : kModifierKinds) check_modifier(kind, modifiers, shape);
}

// ALiBi (Press, Smith & Lewis 2022): a geometric sequence for powers of two; for other numbers of
// heads the sequence of the next lower power, then every other slope of the next higher one.
std::vector<double> default_alibi_slopes(std::int64_t heads) {
  if (heads < 1) {
    throw_input_error(
        {.where = "ALiBi slopes", .expected = "at least 1 head", .actual = std::to_string(heads)});
  }
  std::int64_t power = 1;
  while (power <= heads / 2) power *= 2;  // the largest power of two up to `heads`
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < power; ++h) slopes.push_back(slope_of_power(h, power));
  for (std::int64_t h = 0; h < heads - power; ++h) {
    slopes.push_back(slope_of_power(2 * h, 2 * power));
  }
  return slopes;
}

// A pair is dropped when its 32 random bits are below this: the share is exact to 2^-32.
std::uint32_t dropout_threshold(double dropout) {
  return static_cast<std::uint32_t>(std::llround(std::ldexp(dropout, 32)));
}

double dropout_factor(double dropout) { return 1 / (1 - dropout); }

std::string modifiers_text(const Modifiers& modifiers) {
  std::string text;
  for (const ModifierKind kind : kModifierKinds) {
    if (!modifiers.has(kind)) continue;
    text += (text.empty() ? "" : "+") + std::string(modifier_word(kind)) + ":" +
            value_text(modifiers, kind);
  }
  return text.empty() ? "none" : text;
}

void refuse_modifiers(const Modifiers& modifiers, const std::string& who) {
  if (!modifiers.any()) return;
  throw_usage_error({.where = "modifiers of the scores",
                     .expected = "none: " + who + " does not know them",
                     .actual = modifiers_text(modifiers),
                     .hint = "Soft-capping, ALiBi, sinks and dropout need a subject that can"});
}

}  // namespace ringlab
