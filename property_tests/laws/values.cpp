// Effects of V on O: O is a weighted mean of the visible values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Smallest and largest visible value behind each output, with each value's own error on its way to
/// the kernel; 0 and 0 for an empty row.
struct Hull {
  Tensor<double> least, most;
};

Hull hull_of_values(const Trial& trial, const Pairs& visible, const Tensor<double>& errors) {
  Hull hull{Tensor<double>(trial.shape().out(), kInfinity),
            Tensor<double>(trial.shape().out(), -kInfinity)};
  for_each_index(trial.shape().out(), [&](auto b, auto h, auto i, auto c) {
    double& least = hull.least(b, h, i, c);
    double& most = hull.most(b, h, i, c);
    for (std::int64_t j = 0; j < visible.keys; ++j) {
      if (!visible(i, j)) continue;
      const double v = trial.data.v(b, h / trial.group(), j, c);
      const double error = errors(b, h / trial.group(), j, c);
      least = std::min(least, v - error);
      most = std::max(most, v + error);
    }
    if (least > most) least = most = 0;
  });
  return hull;
}

/// Distance from the hull to which rounding may take a mean of n values of at most `magnitude`:
/// whatever the scores, the computed weights are not negative and are divided by their own sum, but
/// for the errors of merging (out, lse) pairs.
double rounding_outside(const NumericsProfile& p, double n, double magnitude, double merging) {
  const double steps = 2 * n + 4 * static_cast<double>(p.max_rescales) + 16;
  const double least_accumulated =
      std::max(p.u_accumulate < 0x1p-30 ? 0x1p-1074 : 0x1p-149, p.product_underflow);
  const double relative = gamma_bound(steps, p.u_accumulate) + 2 * (p.u_probability + p.u_product) +
                          merging + static_cast<double>(p.max_rescales + 1) * p.u_partial;
  return relative * magnitude + n * (p.p_underflow + factor_underflow(p)) * magnitude +
         steps * least_accumulated + half_ulp(p.out_dtype, magnitude * (1 + relative));
}

/// merge_error() of a row's visible keys.
double merging_of_row(const NumericsProfile& profile, const Trial& trial, const Pairs& visible,
                      std::int64_t b, std::int64_t h, std::int64_t i) {
  if (profile.lse_merges == 0) return 0;
  double largest = 0;
  for (std::int64_t j = 0; j < visible.keys; ++j) {
    if (visible(i, j)) largest = std::max(largest, std::abs(score(trial, b, h, i, j)));
  }
  return merge_error(profile, largest, visible.count(i));
}

LawResult inside_the_hull(const Subject& subject, const Trial& trial, const AttentionOutput& got) {
  const Pairs visible = visible_pairs(trial.problem);
  const Hull hull = hull_of_values(trial, visible, value_errors(subject, trial));
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  Tensor<double> nearest(trial.shape().out());
  Tensor<double> allowed(trial.shape().out());
  const auto merging =
      mapped(Tensor<double>(trial.shape().lse()), [&](double, auto b, auto h, auto i, auto) {
        return merging_of_row(profile, trial, visible, b, h, i);
      });
  for_each_index(trial.shape().out(), [&](auto b, auto h, auto i, auto c) {
    const double least = hull.least(b, h, i, c);
    const double most = hull.most(b, h, i, c);
    // std::clamp would turn a NaN into a bound: it must stay one.
    const double o = got.out(b, h, i, c);
    nearest(b, h, i, c) = o < least ? least : o > most ? most : o;
    const auto n = static_cast<double>(visible.count(i));
    if (n > 0) {
      allowed(b, h, i, c) = rounding_outside(profile, n, std::max(std::abs(least), std::abs(most)),
                                             merging(b, h, i, 0));
    }
  });
  return matches("o", got.out, nearest, allowed);
}

/// Holds because the weights of a row sum to 1. Finds every loss or excess of weight: divisions by
/// a sum of other keys, and accumulators that are rescaled where the sum is not.
LawResult constant_values(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  trial.data.v = mapped(trial.data.v, [&](double, auto b, auto g, auto, auto channel) {
    return round_to(c.dtype, 1.0 + Draws(c.seed, {b, g, channel}).unit());
  });
  const Pairs visible = visible_pairs(trial.problem);
  const auto expected =
      mapped(Tensor<double>(c.shape.out()), [&](double, auto b, auto h, auto i, auto channel) {
        return visible.count(i) == 0 ? 0.0 : trial.data.v(b, h / trial.group(), 0, channel);
      });
  return matches("o", attend(subject, trial).out, expected, judge(subject, trial).allowed.out);
}

/// Makes channel c of V an indicator: 1 on the keys of part c and 0 elsewhere.
/// Holds because the parts cover all keys once. Finds a chunk that is computed twice or never, also
/// where the values themselves would hide it.
LawResult shares_of_parts(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  trial.data.v = mapped(trial.data.v, [&](double, auto, auto, auto j, auto channel) {
    return Draws(c.seed, {j}).below(c.shape.v_dim) == channel ? 1.0 : 0.0;
  });
  const Measured run = measure(subject, trial);
  Tensor<double> sum(c.shape.lse());
  Tensor<double> slack(c.shape.lse());
  for_each_index(c.shape.out(), [&](auto b, auto h, auto i, auto channel) {
    sum(b, h, i, 0) += run.got.out(b, h, i, channel);
    slack(b, h, i, 0) += run.truth.allowed.out(b, h, i, channel);
  });
  const auto whole = mapped(run.truth.exact.lse,
                            [](double lse, auto...) { return lse == -kInfinity ? 0.0 : 1.0; });
  return both(matches("sum of shares", sum, whole, slack),
              inside_the_hull(subject, trial, run.got));
}

/// Holds because O = P V and P does not know V. Finds values that are clipped or narrowed, and
/// maxima that look at V.
LawResult linear_in_values(const Subject& subject, const Case& c) {
  Trial first = make_trial(c);
  Trial second = first;
  Trial mixed = first;
  // V and V' are as large as leaves 2V - 3V' exact: a narrower type on the way would show.
  const std::int64_t limit = c.dtype == DType::bf16 ? 50 : c.dtype == DType::f16 ? 400 : 1 << 21;
  first.data.v = random_integers(c.shape.v(), limit, c.seed);
  second.data.v = random_integers(c.shape.v(), limit, c.seed + 1);
  mixed.data.v = added(scaled(first.data.v, 2), scaled(second.data.v, -3));
  const Measured a = measure(subject, first);
  const Measured b = measure(subject, second);
  const Measured m = measure(subject, mixed);
  if (zeros_would_pass(m.truth)) return unbounded("an output of zeros would pass");
  const auto allowed = added(m.truth.allowed.out,
                             added(scaled(a.truth.allowed.out, 2), scaled(b.truth.allowed.out, 3)));
  return both(agrees("o", m.got.out, added(scaled(a.got.out, 2), scaled(b.got.out, -3)), allowed),
              both(same_lse(subject, a, b), same_lse(subject, a, m)));
}

/// Families whose weights stay clear of underflow, so that scaling commutes with every rounding.
Case moderate_scores(Case c) {
  const bool keeps = c.family == Family::normal || c.family == Family::uniform ||
                     c.family == Family::late_maximum || c.family == Family::constant_v;
  if (!keeps || c.dtype == DType::f16) c.family = Family::small_ints;
  if (c.family == Family::small_ints) c.scale = ScaleKind::rsqrt;
  return c;
}

/// True when partial outputs are rounded to a type whose exponents end before those of f32: one
/// below its normal numbers is rounded more coarsely, wherever the output itself lies.
bool merges_fewer_exponents(const NumericsProfile& profile) {
  return profile.u_partial > 0 &&
         dtype_info(profile.out_dtype).min_normal > dtype_info(DType::f32).min_normal;
}

/// Holds because scaling by 2^k commutes with every rounding that does not underflow. Finds an f16
/// or fp8 that hides in the second product.
LawResult scaling_values(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  if (merges_fewer_exponents(subject.profile(base.problem, base.options))) {
    return discarded("partial outputs have fewer exponents than f32");
  }
  Trial larger = base;
  // f16 has only five exponent bits; the other types could hide an f16 anywhere.
  const std::int64_t power = Draws(c.seed).between(1, c.dtype == DType::f16 ? 8 : 60);
  const double factor = std::ldexp(1.0, static_cast<int>(power));
  larger.data.v = scaled(base.data.v, factor);
  const AttentionOutput before = attend(subject, base);
  const AttentionOutput after = attend(subject, larger);
  // Outputs that are subnormal before scaling were rounded more coarsely.
  const DTypeInfo& info = dtype_info(c.dtype);
  const auto allowed = mapped(before.out, [&](double o, auto...) {
    return std::abs(o) < info.min_normal ? factor * info.min_subnormal : 0.0;
  });
  return both(agrees("o", after.out, scaled(before.out, factor), allowed),
              same_bits("lse", after.lse, before.lse));
}

/// Holds because weights are at least 0 and sum to 1. Finds negative weights, and values of keys
/// that the row may not see.
LawResult convex(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  return inside_the_hull(subject, trial, attend(subject, trial));
}

/// Holds because the maximum is subtracted first: no exponent is above 0. Finds overflow in kernels
/// that take exp(s) as it is, and NaN from inf - inf in rows without a visible key.
LawResult finite(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  const std::int64_t power = Draws(c.seed).between(0, c.dtype == DType::f16 ? 5 : 60);
  trial.data.q = scaled(trial.data.q, std::ldexp(1.0, static_cast<int>(power)));
  const AttentionOutput got = attend(subject, trial);
  const Pairs visible = visible_pairs(trial.problem);
  LawResult result = inside_the_hull(subject, trial, got);
  for_each_index(got.lse.extents(), [&](auto b, auto h, auto i, auto) {
    const double lse = got.lse(b, h, i, 0);
    const bool right = visible.count(i) == 0 ? lse == -kInfinity : std::isfinite(lse);
    if (right) return;
    result = both(
        result, broken("lse(" + std::to_string(b) + ", " + std::to_string(h) + ", " +
                       std::to_string(i) + ", 0): got " + std::to_string(lse) + " for a row with " +
                       std::to_string(visible.count(i)) + " visible keys"));
  });
  return result;
}

Case three_value_channels(Case c) {
  c.shape.v_dim = 3;
  return c;
}

}  // namespace

std::vector<Law> value_laws() {
  return {{.id = "P1",
           .name = "constant_values_come_back",
           .statement = "when all values are equal, O is that value on every row that sees a key",
           .check = constant_values},
          {.id = "P2",
           .name = "shares_of_key_sets_lie_in_0_to_1_and_add_up_to_1",
           .statement = "with V the indicators of a partition of the keys, O is the share of each "
                        "part: nothing is lost and nothing counted twice",
           .shape_case = three_value_channels,
           .check = shares_of_parts},
          {.id = "P3",
           .name = "o_is_linear_in_the_values_and_lse_does_not_see_them",
           .statement = "O(2V - 3V') = 2 O(V) - 3 O(V'); lse keeps its bits",
           .check = linear_in_values},
          {.id = "P4",
           .name = "scaling_the_values_by_a_power_of_two_scales_o_exactly",
           .statement = "O(2^k V) = 2^k O(V) bit for bit, k up to 60: no hidden narrow type",
           .exact = true,
           .shape_case = moderate_scores,
           .check = scaling_values,
           .keeps_modifiers = true},
          {.id = "P8",
           .name = "o_lies_between_the_smallest_and_largest_visible_value",
           .statement = "every output is inside the hull of the values its row may see",
           .check = convex},
          {.id = "P9",
           .name = "finite_inputs_give_finite_outputs_however_large_the_scores",
           .statement = "with queries scaled by up to 2^60 O stays inside the hull of the values "
                        "and lse is finite",
           .shape_case = with_tokens,
           .check = finite}};
}

}  // namespace ringlab::verify
