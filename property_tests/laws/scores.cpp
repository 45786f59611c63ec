// Effects of changed scores on O and lse.
#include <cmath>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/probes.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

double power_of_two(std::int64_t power) { return std::ldexp(1.0, static_cast<int>(power)); }

/// The case with integers where f16 could not hold its values times large powers of two.
Case scalable_values(Case c) {
  if (c.dtype == DType::f16 || c.family == Family::subnormal) c.family = Family::small_ints;
  return c;
}

/// Holds because a power of two moves through products without rounding. Finds a hidden narrow type
/// for q or k, and clamps on inputs.
LawResult scale_moved_between_q_and_k(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  Trial moved = base;
  Draws draws(c.seed);
  const std::int64_t power = draws.between(1, c.dtype == DType::f16 ? 8 : 60);
  const double a = power_of_two(draws.chance(50) ? power : -power);
  moved.data.q = scaled(base.data.q, a);
  moved.data.k = scaled(base.data.k, 1 / a);
  return same_bits(attend(subject, moved), attend(subject, base));
}

Case integer_pairs_of_channels(Case c) { return plain_values(at_least_two_channels(std::move(c))); }

/// Channel pairs (x, y) become (x - y, x + y) in q, and half of that in k: the rotation by 45
/// degrees with its two square roots of 2 cancelled.
Tensor<double> rotated(const Tensor<double>& x, double factor) {
  const std::int64_t paired = x.extents().channels / 2 * 2;
  return mapped(x, [&](double value, auto b, auto h, auto t, auto c) {
    if (c >= paired) return value;
    const double partner = x(b, h, t, c ^ 1);
    return factor * (c % 2 == 0 ? value - partner : partner + value);
  });
}

/// Holds because q·k is invariant under A for q and A^-T for k. Finds channels that are skipped or
/// counted twice where a register tile ends.
LawResult rotated_channels(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  Trial turned = base;
  const Indices order = shuffled(c.shape.head_dim, c.seed);
  turned.data.q = rotated(pick_channels(base.data.q, order), 1.0);
  turned.data.k = rotated(pick_channels(base.data.k, order), 0.5);
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, turned);
  return both(same_out(before, after), shifted_lse(before, after, [](auto...) { return 0.0; }));
}

/// Compares bit for bit, or, where bits may depend on a channel's neighbours or differ from run to
/// run, within both tolerances.
LawResult same_channels(const Subject& subject, const AttentionOutput& got,
                        const AttentionOutput& expected, const ForwardTolerance& allowed) {
  const bool has_bits = subject.can.has(Ability::deterministic);
  if (has_bits && subject.can.has(Ability::same_bits_per_row)) return same_bits(got, expected);
  return both(agrees("o", got.out, expected.out, added(allowed.out, allowed.out)),
              has_bits ? same_bits("lse", got.lse, expected.lse)
                       : agrees("lse", got.lse, expected.lse, added(allowed.lse, allowed.lse)));
}

/// Holds because channels of v never meet, and those of q and k meet only in a sum. Finds output
/// written to the wrong channel, and head_dim used for v_dim.
LawResult permuted_channels(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  Trial qk = base;
  Trial v = base;
  const Indices order = shuffled(c.shape.head_dim, c.seed);
  const Indices v_order = shuffled(c.shape.v_dim, c.seed + 1);
  qk.data.q = pick_channels(base.data.q, order);
  qk.data.k = pick_channels(base.data.k, order);
  v.data.v = pick_channels(base.data.v, v_order);
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, qk);
  const AttentionOutput values = attend(subject, v);
  const AttentionOutput expected{pick_channels(before.got.out, v_order), before.got.lse};
  const ForwardTolerance& allowed = before.truth.allowed;
  return both(
      same_channels(subject, values, expected, {pick_channels(allowed.out, v_order), allowed.lse}),
      both(same_out(before, after), shifted_lse(before, after, [](auto...) { return 0.0; })));
}

/// Tries both ends of the scale. Towards 0 the mean of all visible values comes out, towards
/// infinity that of the values at the maximum: 2^-80 makes every weight exactly 1, 2^10 makes every
/// weight below the maximum of integer scores 0.
/// Finds scales that are applied twice or not at all, and maxima taken before the scale.
LawResult temperature_limits(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  const auto only_top = [](std::int64_t below) { return below == 0 ? 1.0L : 0.0L; };
  const auto all = [](std::int64_t) { return 1.0L; };
  trial.problem.scale = 0x1p-80;
  IntegerScores scores = integer_scores(trial, 0x1p-80);
  scores.weight = all;
  const LawResult flat = exact_where_powers_are(subject, trial, scores);
  trial.problem.scale = 1024;
  scores.unit = 1024;
  scores.weight = only_top;
  return both(flat, exact_where_powers_are(subject, trial, scores));
}

/// Holds because softmax divides a common factor out. Finds exponentials taken without subtracting
/// the maximum, and lse that forgets to add it back.
LawResult shifted_scores(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  const std::int64_t last = c.shape.head_dim - 1;
  const double shift = power_of_two(Draws(c.seed).between(0, 9));
  base.data.q = with_channel(base.data.q, last, [&](auto b, auto h, auto i) {
    Draws draws(c.seed, {b, h, i});
    const double sign = draws.sign();
    return sign * power_of_two(draws.between(0, 5));
  });
  base.data.k = with_channel(base.data.k, last, [](auto...) { return 0.0; });
  Trial shifted = base;
  shifted.data.k = with_channel(base.data.k, last, [&](auto...) { return shift; });
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, shifted);
  return both(same_out(before, after), shifted_lse(before, after, [&](auto b, auto h, auto i) {
                return base.problem.scale * base.data.q(b, h, i, last) * shift;
              }));
}

/// Holds because softmax divides out the shift of each row. Finds q·k computed in fewer bits than
/// declared: the offset makes scores large without changing any weight.
LawResult shifted_keys(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  base.data.k = random_integers(c.shape.k(), 4, c.seed);
  const Tensor<double> offset =
      random_integers({c.shape.batch, c.shape.kv_heads, 1, c.shape.head_dim}, 8, c.seed + 1);
  Trial shifted = base;
  shifted.data.k = mapped(base.data.k, [&](double x, auto b, auto g, auto, auto channel) {
    return x + offset(b, g, 0, channel);
  });
  const Measured before = measure(subject, base);
  const Measured after = measure(subject, shifted);
  return both(same_out(before, after), shifted_lse(before, after, [&](auto b, auto h, auto i) {
                double dot = 0;
                for (std::int64_t channel = 0; channel < c.shape.head_dim; ++channel) {
                  dot += base.data.q(b, h, i, channel) * offset(b, h / base.group(), 0, channel);
                }
                return base.problem.scale * dot;
              }));
}

}  // namespace

std::vector<Law> score_laws() {
  return {
      {.id = "P5",
       .name = "a_power_of_two_moved_from_k_to_q_changes_no_bit",
       .statement = "O(2^k Q, 2^-k K) = O(Q, K) and lse too, bit for bit, k up to 60",
       .exact = true,
       .shape_case = scalable_values,
       .check = scale_moved_between_q_and_k},
      {.id = "P6",
       .name = "rotating_q_and_k_together_changes_nothing",
       .statement = "a rotation of pairs of channels of q and k keeps O and lse",
       .shape_case = integer_pairs_of_channels,
       .check = rotated_channels},
      {.id = "P7",
       .name = "permuting_channels_permutes_the_output_channels",
       .statement = "channels of v permute those of O bit for bit; channels of q and k, "
                    "permuted together, keep O and lse",
       .check = permuted_channels},
      {.id = "P10",
       .name = "scale_towards_0_gives_the_mean_and_towards_infinity_the_best_key",
       .statement = "both temperature limits of the softmax, exact up to the division",
       .exact = true,
       .shape_case = plain_values,
       .check = temperature_limits},
      {.id = "P14",
       .name = "shifting_all_scores_of_a_row_changes_only_lse",
       .statement = "a common shift of up to 2^14 in a row's scores keeps O and moves lse by it",
       .shape_case = at_least_two_channels,
       .check = shifted_scores},
      {.id = "P15",
       .name = "adding_a_constant_vector_to_the_keys_changes_only_lse",
       .statement = "K + c keeps O and moves lse_i by scale q_i · c",
       .check = shifted_keys}};
}

}  // namespace ringlab::verify
