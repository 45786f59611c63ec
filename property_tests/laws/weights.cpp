// Effects of a single score: on weights one by one, and on lse as their total.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/probes.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

/// Turns one key's score up, with a dial: a query channel of ones and a key channel that is 0 but
/// for that key. V reads off its weight and that of all the others.
/// Holds because a softmax weight is a logistic function of its own score. Finds scores that are
/// capped, rounded or paired with the wrong key.
LawResult raised_score(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  const std::int64_t last = c.shape.head_dim - 1;
  const std::int64_t dial = Draws(c.seed).below(c.shape.kv_tokens);
  base.data.q = with_channel(base.data.q, last, [](auto...) { return 1.0; });
  base.data.k = with_channel(base.data.k, last, [](auto...) { return 0.0; });
  base.data.v = mapped(base.data.v, [&](double, auto, auto, auto j, auto channel) {
    return (j == dial) == (channel == 0) ? 1.0 : 0.0;
  });
  Trial raised = base;
  raised.data.k =
      with_channel(base.data.k, last, [&](auto, auto, auto j) { return j == dial ? 2.0 : 0.0; });
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, raised);
  // w' = w e^x / (1 - w + w e^x), whose slope in w is at most e^|x|.
  const double growth = std::exp(2.0 * base.problem.scale);
  const auto expected = mapped(before.got.out, [&](double w, auto, auto, auto, auto channel) {
    const double g = channel == 0 ? growth : 1 / growth;
    return w * g / (1 - w + w * g);
  });
  const double steepest = std::max(growth, 1 / growth);
  const auto allowed = added(after.truth.allowed.out, scaled(before.truth.allowed.out, steepest));
  const Pairs visible = visible_pairs(base.problem);
  const auto or_alone = mapped(expected, [&](double w, auto b, auto h, auto i, auto channel) {
    // A row that does not see the key keeps its weights; 0 / 0 is of a row without any.
    return visible(i, dial) ? w : before.got.out(b, h, i, channel);
  });
  return agrees("o", after.got.out, or_alone, allowed);
}

/// Holds because the sum of e^(s - max) lies between 1 and n. Finds lse in base 2, lse without its
/// maximum, and hidden keys in the sum.
LawResult lse_brackets(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const Measured run = measure(subject, trial);
  const Pairs visible = visible_pairs(trial.problem);
  const auto nearest = mapped(run.got.lse, [&](double lse, auto b, auto h, auto i, auto) {
    double top = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < visible.keys; ++j) {
      if (visible(i, j)) top = std::max(top, score(trial, b, h, i, j));
    }
    const double most = top + std::log(static_cast<double>(visible.count(i)));
    return lse < top ? top : lse > most ? most : lse;
  });
  return matches("lse", run.got.lse, nearest, run.truth.allowed.lse);
}

/// The retrieval probe with a gap of 104 nats: the other weights are subnormal or 0 in f32.
/// Finds weights that become NaN or large where they should underflow.
LawResult dominated_rows(const Subject& subject, const Case& c) {
  constexpr double kStrength = 52;
  Trial trial = make_trial(c);
  const Tensor<double> target = use_retrieval_codes(trial, kStrength, c.seed);
  const AttentionOutput expected = retrieved(trial, target, kStrength);
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const double u = profile.u_accumulate;
  const Tensor<double> errors = retrieved_errors(subject, trial, target, kStrength);
  const Tensor<double> sizes =
      added(mapped(trial.data.v, [](double v, auto...) { return std::abs(v); }),
            value_errors(subject, trial));
  double largest = 0;
  for (const double size : sizes.values()) largest = std::max(largest, size);
  const double others =
      std::exp(-2 * kStrength) * 2 * largest * static_cast<double>(c.shape.kv_tokens);
  const auto allowed = mapped(expected.out, [&](double o, auto b, auto h, auto i, auto channel) {
    if (target(b, h, i, 0) < 0) return 0.0;
    const double error = errors(b, h, i, channel);
    const double size = std::abs(o) + error;
    return error + 4 * u * size + others + 2 * half_ulp(profile.out_dtype, size + others);
  });
  const auto lse_allowed = mapped(expected.lse, [&](double lse, auto...) {
    return std::isinf(lse)
               ? 0.0
               : 8 * (u + profile.u_lse) * lse + merge_error(profile, lse, trial.shape().kv_tokens);
  });
  const AttentionOutput got = attend(subject, trial);
  return both(matches("o", got.out, expected.out, allowed),
              matches("lse", got.lse, expected.lse, lse_allowed));
}

Case with_a_dial(Case c) {
  c.shape.v_dim = 2;
  return with_tokens(at_least_two_channels(std::move(c)));
}

}  // namespace

std::vector<Law> weight_laws() {
  return {
      {.id = "P25",
       .name = "raising_a_score_raises_its_weight_and_lowers_the_others",
       .statement = "w' = w e^x / (1 - w + w e^x) when one score rises by x, its mirror image "
                    "for the others, and rows that do not see the key stay",
       .shape_case = with_a_dial,
       .check = raised_score},
      {.id = "P26",
       .name = "lse_lies_between_the_largest_score_and_that_plus_ln_n",
       .statement = "max s <= lse <= max s + ln n for n visible keys",
       .needs = {Ability::lse},
       .check = lse_brackets},
      {.id = "P28",
       .name = "a_key_100_nats_above_the_rest_is_all_there_is",
       .statement = "O is the value of the dominating key and lse its score, although the other "
                    "weights are subnormal",
       .shape_case = code_channels,
       .check = dominated_rows}};
}

}  // namespace ringlab::verify
