// Keys that are added, and their effects on O and lse.
#include <cmath>
#include <string>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

/// The last rank also holds the appended keys, after its own, so that every sum keeps its order.
Layout with_appended(const Layout& layout, std::int64_t tokens) {
  std::vector<Positions> parts;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    std::vector<std::int64_t> held = layout.positions(rank).to_list();
    for (std::int64_t t = layout.tokens(); rank + 1 == layout.ranks() && t < tokens; ++t) {
      held.push_back(t);
    }
    parts.push_back(Positions::from_list(held));
  }
  return Layout::from_parts(std::move(parts));
}

/// Holds because a weight of e^-2^30 is 0 in every format: adding it is exact. Finds rescales on a
/// false new maximum, and row sums that count keys instead of weights.
LawResult worthless_keys(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  const std::int64_t last = c.shape.head_dim - 1;
  const double side = c.dtype == DType::f16 ? 0x1p15 : 0x1p50;
  base.data.q = with_channel(base.data.q, last, [&](auto...) { return side; });
  base.data.k = with_channel(base.data.k, last, [](auto...) { return 0.0; });
  const Pairs visible = visible_pairs(base.problem);
  Indices from = in_order(c.shape.kv_tokens);
  const std::int64_t more = Draws(c.seed).between(1, 5);
  for (std::int64_t t = 0; t < more; ++t) from.push_back(t % c.shape.kv_tokens);
  Trial longer = with_keys(base, from);
  longer.data.k = with_channel(longer.data.k, last,
                               [&](auto, auto, auto t) { return t < visible.keys ? 0.0 : -side; });
  // Only rows that see a real key see the new ones: for the others they would be everything.
  const auto sees = [&](std::int64_t i, std::int64_t j) {
    return j < visible.keys ? visible(i, j) : visible.count(i) > 0;
  };
  use_pairs(base.problem, visible);
  use_pairs(longer.problem, make_pairs(visible.queries, visible.keys + more, sees));
  const Layout layout = make_layout(base.options, c.shape.kv_tokens, {});
  if (c.ranks > 1) longer.options.kv_layout = with_appended(layout, visible.keys + more);
  return same_bits(attend(subject, longer), attend(subject, base));
}

/// Row `row` of the first query head of every K/V head.
Tensor<double> at_row(const Trial& trial, const Tensor<double>& x, std::int64_t row) {
  Indices heads;
  for (std::int64_t g = 0; g < trial.shape().kv_heads; ++g) heads.push_back(g * trial.group());
  return pick_heads(pick_tokens(x, {row}), heads);
}

/// The trial with one more key: its k is that of `twin`, its v what `row` already gets.
Trial with_own_output(const Trial& trial, const Tensor<double>& out, std::int64_t row,
                      std::int64_t twin) {
  const std::int64_t keys = trial.shape().kv_tokens;
  Indices from = in_order(keys);
  from.push_back(twin);
  Trial longer = with_keys(trial, from);
  longer.data.v = mapped(longer.data.v, [&](double old, auto b, auto g, auto t, auto c) {
    return t < keys ? old : round_to(trial.problem.dtype, out(b, g * trial.group(), row, c));
  });
  return longer;
}

/// Holds because a mean does not move when one more number equal to it comes in: only lse notices.
/// Finds outputs that are divided by a sum other than that of lse.
LawResult key_with_the_output_as_value(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  const Pairs visible = visible_pairs(base.problem);
  const std::int64_t row = Draws(c.seed).below(c.shape.q_tokens);
  if (visible.count(row) == 0) return discarded("the row sees no key");
  std::int64_t twin = 0;
  while (!visible(row, twin)) ++twin;
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, with_own_output(base, before.truth.exact.out, row, twin));
  const auto picked = [&](const Tensor<double>& x) { return at_row(base, x, row); };
  const auto rounding = mapped(picked(before.truth.exact.out),
                               [&](double o, auto...) { return half_ulp(c.dtype, std::abs(o)); });
  const auto lse = mapped(picked(before.got.lse), [&](double old, auto b, auto g, auto, auto) {
    return logaddexp(old, score(base, b, g * base.group(), row, twin));
  });
  return both(
      agrees("o", picked(after.got.out), picked(before.got.out),
             added(rounding, picked(added(before.truth.allowed.out, after.truth.allowed.out)))),
      agrees("lse", picked(after.got.lse), lse,
             picked(added(before.truth.allowed.lse, after.truth.allowed.lse))));
}

Case spare_channel_and_positive_scale(Case c) {
  return with_positive_scale(with_tokens(at_least_two_channels(std::move(c))));
}

}  // namespace

std::vector<Law> added_key_laws() {
  return {{.id = "P23",
           .name = "keys_with_hopeless_scores_change_no_bit",
           .statement = "appended keys 2^30 or more below the rest leave O and lse bit for bit",
           .exact = true,
           .shape_case = spare_channel_and_positive_scale,
           .needs = {Ability::sums_keys_in_order},
           .check = worthless_keys},
          {.id = "P24",
           .name = "a_key_whose_value_is_the_output_changes_only_lse",
           .statement = "O_i stays when a key with v = O_i comes in, and lse grows by its weight",
           .shape_case = with_tokens,
           .check = key_with_the_output_as_value}};
}

}  // namespace ringlab::verify
