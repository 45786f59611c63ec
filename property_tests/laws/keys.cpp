// Effects on O and lse of keys that come differently: permuted, split, doubled, divided.
#include <algorithm>
#include <cmath>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/probes.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

/// Holds because a sum does not depend on its order, but for rounding. Finds keys skipped or
/// doubled where a tile ends, and masks read at the wrong key.
LawResult permuted_keys(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  const Trial permuted = with_keys(base, shuffled(c.shape.kv_tokens, c.seed));
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, permuted);
  return both(same_out(before, after), shifted_lse(before, after, [](auto...) { return 0.0; }));
}

/// Splits a key in two: with scale ln 2 a step of -1 in one channel halves a weight.
/// Holds because two halves make the whole. Finds weights that depend on how many keys there are.
LawResult split_key(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  base.problem.scale = ln_2_as_scale(c.dtype);
  const std::int64_t last = c.shape.head_dim - 1;
  base.data.q = with_channel(base.data.q, last, [](auto...) { return 1.0; });
  base.data.k = with_channel(base.data.k, last, [](auto...) { return 0.0; });
  const std::int64_t key = Draws(c.seed).below(c.shape.kv_tokens);
  Indices from = in_order(c.shape.kv_tokens);
  from.push_back(key);
  Trial halves = with_keys(base, from);
  halves.data.k = with_channel(halves.data.k, last, [&](auto, auto, std::int64_t t) {
    return t == key || t == c.shape.kv_tokens ? -1.0 : 0.0;
  });
  const Measured before = measure(subject, base);
  Measured after = measure(subject, halves);
  // A float is not quite ln 2: the two halves weigh e^(ln 2 - scale) together, and |v| <= 4.
  const double slack = 2 * std::abs(base.problem.scale - std::log(2.0)) + 0x1p-53;
  after.truth.allowed.out =
      mapped(after.truth.allowed.out, [&](double x, auto...) { return x + 8 * slack; });
  after.truth.allowed.lse =
      mapped(after.truth.allowed.lse, [&](double x, auto...) { return x + slack; });
  return both(same_out(before, after), shifted_lse(before, after, [](auto...) { return 0.0; }));
}

/// Holds because numerator and denominator double together. Finds sums cut off at a length, and lse
/// that is computed apart from the division.
LawResult doubled_keys(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  Indices twice = in_order(2 * c.shape.kv_tokens);
  for (std::int64_t& key : twice) key %= c.shape.kv_tokens;
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, with_keys(base, twice));
  return both(same_out(before, after),
              shifted_lse(before, after, [](auto...) { return std::log(2.0); }));
}

/// Holds because lse is the logarithm of a sum, and the sum splits. Finds hidden keys that leak
/// into row sums, and merges that lose a part.
LawResult lse_of_a_partition(const Subject& subject, const Case& c) {
  const Trial all = make_trial(c);
  const Pairs visible = visible_pairs(all.problem);
  const auto part = [&](bool first) {
    Trial trial = all;
    use_pairs(trial.problem,
              make_pairs(visible.queries, visible.keys, [&](std::int64_t i, std::int64_t j) {
                return visible(i, j) && Draws(c.seed, {i, j}).chance(50) == first;
              }));
    return trial;
  };
  const Measured whole = measure(subject, all);
  const Measured first = measure(subject, part(true));
  const Measured second = measure(subject, part(false));
  const auto sum = mapped(first.got.lse, [&](double lse, auto b, auto h, auto i, auto) {
    return logaddexp(lse, second.got.lse(b, h, i, 0));
  });
  // The derivative of logaddexp is a mean: the larger of the two errors comes through at most.
  const auto allowed = mapped(whole.truth.allowed.lse, [&](double x, auto b, auto h, auto i, auto) {
    return x + std::max(first.truth.allowed.lse(b, h, i, 0), second.truth.allowed.lse(b, h, i, 0));
  });
  return agrees("lse", whole.got.lse, sum, allowed);
}

Case integers_with_a_spare_channel(Case c) {
  return plain_values(with_tokens(at_least_two_channels(std::move(c))));
}

}  // namespace

std::vector<Law> key_laws() {
  return {
      {.id = "P16",
       .name = "permuting_keys_values_and_mask_together_changes_nothing",
       .statement = "O and lse do not depend on the order of the keys",
       .check = permuted_keys},
      {.id = "P21",
       .name = "a_key_split_into_two_halves_counts_as_before",
       .statement = "two keys with score s - ln 2 and the same value stand for one with score s",
       .shape_case = integers_with_a_spare_channel,
       .check = split_key},
      {.id = "P22",
       .name = "doubling_all_keys_adds_ln_2_to_lse",
       .statement = "every key twice: O as before, lse + ln 2",
       .check = doubled_keys},
      {.id = "P27",
       .name = "lse_of_all_keys_is_the_logaddexp_of_any_partition",
       .statement = "lse = log(e^lse_1 + e^lse_2) for the two parts of any partition",
       .needs = {Ability::lse},
       .check = lse_of_a_partition}};
}

}  // namespace ringlab::verify
