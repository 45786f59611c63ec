// Infinite values: they show where they are seen, and nowhere else.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// One number of V, and the infinity that it becomes.
struct Spot {
  std::int64_t batch, kv_head, key, channel;
  double value;
};

Spot random_spot(const Shape& shape, std::uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Draws draws(seed);
  return {.batch = draws.below(shape.batch),
          .kv_head = draws.below(shape.kv_heads),
          .key = draws.below(shape.kv_tokens),
          .channel = draws.below(shape.v_dim),
          .value = draws.chance(50) ? kInfinity : -kInfinity};
}

/// Holds because a weight above 0 times ±inf is ±inf, and a hidden key has no part at all. Finds
/// masks that multiply by 0 (0 · inf is NaN), and infinities that spread over a tile or a channel.
LawResult infinite_value(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  if (trial.shape().kv_tokens == 0) return discarded("there are no keys");
  if (!travels_exactly(subject.profile(trial.problem, trial.options))) {
    return discarded("the wire has no infinity");
  }
  // Equal scores: no weight of a visible key is 0.
  trial.data.q = scaled(trial.data.q, 0);
  const Pairs visible = visible_pairs(trial.problem);
  const Spot spot = random_spot(trial.shape(), c.seed);
  AttentionOutput expected = attend(subject, trial);
  bool seen = false;
  for_each_index(trial.shape().out(), [&](auto b, auto h, auto i, auto channel) {
    const bool meets = b == spot.batch && h / trial.group() == spot.kv_head &&
                       channel == spot.channel && visible(i, spot.key);
    if (!meets) return;
    seen = true;
    expected.out(b, h, i, channel) = spot.value;
  });
  if (!seen) return discarded("nobody sees the value");
  const std::optional<ForwardTolerance> allowed = allowed_beside(subject, trial, spot.value);
  trial.data.v(spot.batch, spot.kv_head, spot.key, spot.channel) = spot.value;
  return same_rows(fmt::format("v of key {} = {}", spot.key, spot.value), attend(subject, trial),
                   expected, {}, allowed);
}

}  // namespace

std::vector<Law> infinite_value_laws() {
  return {{.id = "infinite_value",
           .name = "an_infinite_value_shows_in_the_rows_that_see_it_and_nowhere_else",
           .statement = "With equal scores, a value of +inf or -inf comes out in its channel of "
                        "every row that sees its key; all other bits stay",
           .exact = true,
           .or_within_bounds = true,
           .needs = {Ability::masked_may_be_nan},
           .check = infinite_value}};
}

}  // namespace ringlab::verify
