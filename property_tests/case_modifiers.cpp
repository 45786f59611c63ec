#include "property_tests/case_modifiers.h"

#include <cmath>

#include "property_tests/generators/draws.h"

namespace ringlab::verify {
namespace {

/// Sinks as large as scores mostly are; in one case of four up to ten times that, so that they
/// outweigh all keys or none.
std::vector<double> random_sinks(std::int64_t heads, std::uint64_t seed) {
  constexpr std::int64_t kSinkStream = -2;  // tensors are drawn from other streams
  const double most = Draws(seed, {kSinkStream}).chance(25) ? 30 : 3;
  std::vector<double> sinks;
  for (std::int64_t h = 0; h < heads; ++h) {
    sinks.push_back(most * Draws(seed, {kSinkStream, h}).symmetric());
  }
  return sinks;
}

/// The customary ALiBi slopes in one case of four; else each head has its own up to 4, and one in
/// eight has none. Of 128 keys on half of them are so small that the farthest keys still count.
std::vector<double> random_slopes(const Shape& shape, std::uint64_t seed) {
  constexpr std::int64_t kSlopeStream = -3, kMany = 128, kNear = 16;
  if (Draws(seed, {kSlopeStream}).chance(25)) return default_alibi_slopes(shape.q_heads);
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < shape.q_heads; ++h) {
    Draws draws(seed, {kSlopeStream, h});
    // One draw per statement: compilers differ in the order in which they evaluate arguments.
    const auto halvings = static_cast<int>(draws.between(-1, 9));
    const double slope = std::ldexp(1 + draws.unit(), -halvings);
    const bool is_flat = draws.chance(12);
    const bool reaches_far = shape.kv_tokens >= kMany && draws.chance(50);
    const double farther = reaches_far ? static_cast<double>(shape.kv_tokens) / kNear : 1;
    slopes.push_back(is_flat ? 0 : slope / farther);
  }
  return slopes;
}

/// The numbers that a modifier is made from.
struct Wanted {
  double level;
  const Shape* shape;
  std::uint64_t seed;
};

void add(ModifierKind kind, const Wanted& wanted, Modifiers& made) {
  switch (kind) {
    case ModifierKind::softcap:
      made.softcap = wanted.level;
      break;
    case ModifierKind::alibi:
      made.alibi_slopes = random_slopes(*wanted.shape, wanted.seed);
      break;
    case ModifierKind::sinks:
      made.sinks = random_sinks(wanted.shape->q_heads, wanted.seed);
      break;
    case ModifierKind::dropout:
      made.dropout = wanted.level / 100.0;
      made.dropout_seed = wanted.seed;
      break;
  }
}

}  // namespace

ModifierWords words_of(ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return {
          .token = "cap", .step = 0.25, .most = 1024, .most_drawn = 30, .phrase = "soft cap {}"};
    case ModifierKind::alibi:
      return {.token = "alibi", .phrase = "ALiBi"};
    case ModifierKind::sinks:
      return {.token = "sinks", .phrase = "sinks"};
    case ModifierKind::dropout:
      return {.token = "drop", .most = 90, .most_drawn = 90, .phrase = "{} % dropped"};
  }
  return {};
}

double CaseModifiers::level(ModifierKind kind) const {
  switch (kind) {
    case ModifierKind::softcap:
      return softcap;
    case ModifierKind::alibi:
      return alibi;
    case ModifierKind::sinks:
      return sinks;
    case ModifierKind::dropout:
      return dropout_percent;
  }
  return 0;
}

void CaseModifiers::set(ModifierKind kind, double level) {
  switch (kind) {
    case ModifierKind::softcap:
      softcap = level;
      break;
    case ModifierKind::alibi:
      alibi = level != 0;
      break;
    case ModifierKind::sinks:
      sinks = level != 0;
      break;
    case ModifierKind::dropout:
      dropout_percent = static_cast<int>(level);
      break;
  }
}

Modifiers make_modifiers(const CaseModifiers& modifiers, const Shape& shape, std::uint64_t seed) {
  Modifiers made;
  for (const ModifierKind kind : kModifierKinds) {
    const double level = modifiers.level(kind);
    if (level != 0) add(kind, {level, &shape, seed}, made);
  }
  return made;
}

}  // namespace ringlab::verify
