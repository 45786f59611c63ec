// Laws that gradients must keep bit for bit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {
namespace {

/// Asks for gradients of dout = 0 after a run that left something behind.
/// Holds because every gradient has dO as a factor. Finds sums that are not cleared, and delta
/// taken from the run before.
LawResult nothing_from_above(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  differentiate(subject, trial);
  for (double& x : trial.dout.values()) x = 0;
  const Shape& s = c.shape;
  const AttentionGradients zeros{Tensor<double>(s.q()), Tensor<double>(s.k()),
                                 Tensor<double>(s.v())};
  return same_gradient_bits("dout = 0", differentiate(subject, trial), zeros);
}

Case moderate_values(Case c) {
  c.family = Family::uniform;  // no intermediate result comes near the end of the f32 range
  c.scale = ScaleKind::rsqrt;
  return with_tokens(c);
}

/// The least gradient that rounding below the normal numbers leaves alone: of the result in its
/// dtype, and of the terms of its sum, where ALiBi makes tiny weights.
double least_exact_gradient(const Case& c) {
  const DType summed = c.dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::int64_t group = c.shape.q_heads / c.shape.kv_heads;
  const auto terms = static_cast<double>(std::max(group * c.shape.q_tokens, c.shape.kv_tokens));
  return 2 * std::max(dtype_info(c.dtype).min_normal, terms * dtype_info(summed).min_normal);
}

/// `got`, with the numbers below `least` in both taken from `want`.
Tensor<double> without_subnormal(const Tensor<double>& got, const Tensor<double>& want,
                                 double least) {
  return mapped(got, [&](double x, auto b, auto h, auto t, auto c) {
    const double wanted = want(b, h, t, c);
    const bool tiny = std::abs(wanted) < least && std::abs(x) < least;
    return tiny ? wanted : x;
  });
}

/// True when dS or partial gradients are rounded to a type whose exponents end before those of f32:
/// moderate values may come out below its normal numbers, where powers of two do not pass through.
bool rounds_to_fewer_exponents(const NumericsProfile& profile) {
  const double least = dtype_info(DType::f32).min_normal;
  const bool stores = profile.key_gradient_stores > 0 || profile.query_gradient_stores > 0;
  return profile.p_underflow > least ||
         (stores && dtype_info(profile.out_dtype).min_normal > least);
}

/// Holds because gradients are linear in dO. Finds gradients that are narrowed or clipped on their
/// way, between ranks too.
LawResult scaled_by_a_power_of_two(const Subject& subject, const Case& c) {
  const GradientTrial once = make_gradient_trial(c);
  if (rounds_to_fewer_exponents(subject.profile(once.base.problem, once.base.options))) {
    return discarded("numbers on the way have fewer exponents than f32");
  }
  const double factor = std::ldexp(c.seed % 2 ? 1.0 : -1.0, static_cast<int>(c.seed % 13) - 6);
  GradientTrial more = once;
  more.dout = scaled(once.dout, factor);
  for (std::size_t i = 0; i < once.dout.values().size(); ++i) {
    if (round_to(c.dtype, more.dout.values()[i]) != more.dout.values()[i]) {
      return discarded("dout cannot be scaled in its dtype");
    }
  }
  const AttentionGradients base = differentiate(subject, once);
  AttentionGradients got = differentiate(subject, more);
  const AttentionGradients want{scaled(base.dq, factor), scaled(base.dk, factor),
                                scaled(base.dv, factor)};
  const double least = least_exact_gradient(c) * std::max(1.0, std::abs(factor));
  got.dq = without_subnormal(got.dq, want.dq, least);
  got.dk = without_subnormal(got.dk, want.dk, least);
  got.dv = without_subnormal(got.dv, want.dv, least);
  return same_gradient_bits(fmt::format("dout times {}", factor), got, want);
}

Case causal_rows(Case c) {
  c = with_tokens(c);
  c.shape.q_tokens = std::max<std::int64_t>(2, c.shape.q_tokens);
  c.mask = "causal";
  return c;
}

/// A row that is neither the first nor beyond the last.
std::int64_t random_cut(const Case& c) { return 1 + Draws(c.seed).below(c.shape.q_tokens - 1); }

/// Overwrites rows before a cut: keys from the cut on are seen by rows from the cut on only.
/// Holds because dk_j and dv_j are sums over the rows that see key j. Finds hidden rows that take
/// part with a weight of 0, which NaN shows, and masks that are off by one in the backward pass.
LawResult keys_depend_on_later_rows(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const AttentionGradients before = differentiate(subject, trial);
  const std::int64_t cut = random_cut(c), first_key = cut + first_position(c);
  const RowFilter later = [&](std::int64_t key) { return key >= first_key; };
  std::vector<LawResult> results;
  for (const double poison : poisons(subject)) {
    GradientTrial changed = trial;
    fill_tokens(changed.base.data.q, 0, cut, poison);
    fill_tokens(changed.dout, 0, cut, poison);
    const AttentionGradients after = differentiate(subject, changed);
    const std::string what = fmt::format("q and dout of rows before {} = {}: ", cut, poison);
    const std::optional<BackwardTolerance> allowed = allowed_beside(subject, trial, poison);
    results.push_back(
        same_at(what + "dk", after.dk, before.dk, later, allowed ? &allowed->dk : nullptr));
    results.push_back(
        same_at(what + "dv", after.dv, before.dv, later, allowed ? &allowed->dv : nullptr));
  }
  return all_held(results);
}

/// Holds because dq_i sums over the keys that row i sees. Finds these mistakes in loops over keys.
LawResult rows_depend_on_earlier_keys(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const AttentionGradients before = differentiate(subject, trial);
  const std::int64_t cut = random_cut(c);
  const std::int64_t first_key = std::max<std::int64_t>(0, cut + first_position(c));
  std::vector<LawResult> results;
  for (const double poison : poisons(subject)) {
    GradientTrial changed = trial;
    fill_tokens(changed.base.data.k, first_key, c.shape.kv_tokens, poison);
    fill_tokens(changed.base.data.v, first_key, c.shape.kv_tokens, poison);
    const std::optional<BackwardTolerance> allowed = allowed_beside(subject, trial, poison);
    results.push_back(same_at(
        fmt::format("k and v of keys from {} on = {}: dq", first_key, poison),
        differentiate(subject, changed).dq, before.dq, [&](std::int64_t row) { return row < cut; },
        allowed ? &allowed->dq : nullptr));
  }
  return all_held(results);
}

/// Holds because gradients are results and no sums over calls. Finds buffers that are added to and
/// never cleared.
LawResult a_second_run_starts_afresh(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  GradientTrial other = trial;
  other.dout = scaled(trial.dout, -2);
  const AttentionGradients first = differentiate(subject, trial);
  differentiate(subject, other);
  return same_gradient_bits("run again after another run", differentiate(subject, trial), first,
                            allowed_between_runs(subject, trial));
}

}  // namespace

std::vector<Law> gradient_bit_laws() {
  return {
      {.id = "P46",
       .name = "nothing_from_above_gives_gradients_of_zero",
       .statement = "dout = 0: all gradients are 0.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = nothing_from_above,
       .keeps_modifiers = true},
      {.id = "P47",
       .name = "a_power_of_two_on_dout_is_one_on_the_gradients",
       .statement = "Gradients are linear in dout; powers of two pass through exactly.",
       .exact = true,
       .shape_case = moderate_values,
       .needs = {Ability::backward},
       .check = scaled_by_a_power_of_two,
       .keeps_modifiers = true},
      {.id = "P48",
       .name = "dk_and_dv_of_a_key_depend_on_later_rows_only",
       .statement =
           "Causal: q and dout of rows that do not see a key do not move its dk and dv by a bit.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = causal_rows,
       .needs = {Ability::backward},
       .check = keys_depend_on_later_rows},
      {.id = "P49",
       .name = "dq_of_a_row_depends_on_earlier_keys_only",
       .statement = "Causal: k and v that a row does not see do not move its dq by a bit.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = causal_rows,
       .needs = {Ability::backward},
       .check = rows_depend_on_earlier_keys},
      {.id = "P57",
       .name = "a_second_run_gives_the_same_gradients",
       .statement =
           "Gradients are set, not added to what an earlier run left: the same bits again.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = a_second_run_starts_afresh,
       .keeps_modifiers = true},
  };
}

}  // namespace ringlab::verify
