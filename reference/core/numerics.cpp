#include "reference/core/numerics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// More than the rounding of the few dozen double operations that evaluate one bound.
constexpr double kOutward = 1.0 + 0x1p-44;

/// The value, or +inf for NaN and for anything negative, which no bound is.
double no_promise_unless_valid(double bound) { return bound >= 0 ? bound * kOutward : kInfinity; }

/// Half the least subnormal; the least subnormal where a double cannot hold the half.
double half_least(DType dtype) {
  return dtype == DType::f64 ? 0x1p-1074 : dtype_info(dtype).min_subnormal / 2;
}

/// Relative error of the row sum, and of each product's way into the accumulator.
double accumulation_error(const NumericsProfile& profile, std::int64_t terms) {
  const std::int64_t chain = profile.accumulation_chain;
  const double operations = static_cast<double>(chain > 0 ? std::min(chain, terms) : terms) +
                            2.0 * static_cast<double>(profile.max_rescales) + 1.0;
  return gamma_bound(operations, profile.u_accumulate);
}

/// What one key's weight, relative to the row maximum, may lose to underflow: its own exp and one
/// per rescale factor. Underflowing products are three per key however many rescales there are,
/// because a rescale that merges nothing multiplies by one: n terms, at most 2 (n - 1) partial
/// sums.
double weight_underflow(const NumericsProfile& profile) {
  return profile.exp_underflow * (static_cast<double>(profile.max_rescales) + 1.0);
}

/// What partial gradients lose when they are stored in the type of the gradients and read back,
/// scaled or not yet scaled, of which these are the largest.
double storing_error(const NumericsProfile& profile, const GradientTerms& terms, double scaled,
                     double unscaled) {
  // Storing a number of that type again changes nothing, so t terms are rounded t times at most,
  // the last time when the sum is complete.
  const std::int64_t stores = std::min(terms.stores, terms.terms - 1);
  if (stores <= 0) return 0;
  const auto count = static_cast<double>(stores);
  const double gamma = gamma_bound(count, dtype_info(profile.out_dtype).unit_roundoff);
  const double largest = std::max(scaled, unscaled) * (1 + gamma);
  if (std::isinf(half_ulp(profile.out_dtype, largest))) return kInfinity;
  const double lost = half_least(profile.out_dtype) * std::max(terms.scale, 1.0);
  return gamma * scaled + count * lost * (1 + gamma);
}

/// Absolute errors of weights are relative to the computed maximum, ℓ to the true one.
double lift_of(double max_error, double row_sum) { return std::exp(max_error) / row_sum; }

/// Error of the row sum: relative to itself, and relative to ℓ through underflow.
struct RowSumError {
  double relative = 0;
  double absolute = 0;
};

RowSumError row_sum_error(const NumericsProfile& profile, std::int64_t keys, double lift) {
  const double cast = profile.u_row_sum > 0 ? profile.p_underflow : 0;
  const double each = weight_underflow(profile) + 3 * profile.product_underflow + cast;
  return {accumulation_error(profile, keys) + profile.u_row_sum,
          lift * static_cast<double>(keys) * each};
}

/// Σ w_j (1 + ρ_j) |v_j|, because |v_j| <= |v_j - o| + |o|; of the values that arrived.
double moved_magnitude(const OutputTerms& terms) {
  return terms.weighted_magnitude + terms.weighted_spread + terms.weighted_rho * terms.out +
         terms.weighted_wire;
}

/// Upper bounds of what the score of the keys that arrived has, from those of the keys that left.
ScoreTerms after_the_wire(const NumericsProfile& profile, ScoreTerms terms) {
  const double own = wire_score_error(profile, terms);
  const double any = largest_wire_score_error(profile, terms);
  const double each = wire_error(profile, 0, terms.key_largest);
  terms.key_magnitude += profile.u_wire * terms.key_magnitude +
                         (each > 0 ? static_cast<double>(terms.head_dim) * each : 0);
  terms.absolute_products += own;
  terms.largest_products += any;
  terms.largest_score += any;
  terms.largest_scaled += any;  // of the own scaled score both ends matter: see cap_own()
  terms.distance_from_max += own + any;
  return terms;
}

/// Error of Σ_j w_j v_j as computed, without that of the row sum it is divided by.
double numerator_error(const NumericsProfile& profile, const OutputTerms& terms, double lift) {
  const double gamma = accumulation_error(profile, terms.keys);
  const double magnitude = moved_magnitude(terms);
  const double magnitude_sum = terms.magnitude_sum + terms.wire_sum;
  const double cast =
      profile.u_probability * magnitude + profile.p_underflow * lift * magnitude_sum;
  const double merges = std::max(static_cast<double>(profile.max_rescales), 1.0);
  const double partial = profile.u_partial == 0
                             ? 0
                             : gamma_bound(merges, profile.u_partial) * magnitude +
                                   merges * half_least(profile.out_dtype);
  const double underflow =
      lift * (weight_underflow(profile) * magnitude_sum +
              profile.product_underflow * (3 * static_cast<double>(terms.keys) + 2));
  const double dropout =
      terms.factor_roundings *
      (profile.u_work * magnitude + profile.product_underflow * static_cast<double>(terms.keys));
  return terms.weighted_spread + (gamma + terms.merge_error) * magnitude + cast * (1 + gamma) +
         partial + underflow + terms.weighted_wire + dropout;
}

/// Error of scale · q·k_j, but for the constant that all keys of a row share.
double dot_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  const double dim = static_cast<double>(terms.head_dim);
  const double gamma = gamma_bound(dim, profile.u_accumulate);
  const double underflow =
      profile.product_underflow * (dim * std::max(terms.scale, 1.0) + 2) +
      (profile.u_query > 0 ? profile.query_underflow * terms.key_magnitude : 0);
  return (gamma + profile.u_query * (1 + gamma)) * terms.absolute_products + underflow;
}

/// What soft-capping makes of a scaled score.
struct Capping {
  double capped = 0;  ///< upper bound of the size of the result, as computed
  double error = 0;   ///< of the result
};

/// 1 - tanh² at the nearest to zero that a score may be: the largest derivative in reach.
double steepest(double softcap, double scaled, double error) {
  const double cosh = std::cosh(std::max(scaled - error, 0.0) / softcap);
  return std::min(1.0, (1 + 0x1p-40) / cosh / cosh);
}

/// Six roundings before: scale, scale · log2 e and 1 / softcap as constants, their products and the
/// score's; three after: softcap as a constant, times log2 e, times tanh.
Capping cap_score(const NumericsProfile& profile, double softcap, double scaled, double error) {
  const double before = error + 6 * profile.u_work * (scaled + error);
  if (softcap == 0) return {scaled + before, before};
  const double moved = steepest(softcap, scaled, before) * before;
  const double capped = softcap * std::tanh(scaled / softcap) * (1 + 0x1p-40) + moved;
  return {capped, moved + (profile.tanh_error + 3 * profile.u_work) * capped +
                      softcap * profile.tanh_floor + profile.product_underflow * (softcap + 2)};
}

Capping cap_own(const NumericsProfile& profile, const ScoreTerms& terms, double wire) {
  return cap_score(profile, terms.softcap, terms.scaled_score, dot_error(profile, terms) + wire);
}

/// Error of a score before it is compared with the row's maximum. ALiBi: slope, distance and log2 e
/// as constants, their products; then the difference.
double modified_error(const NumericsProfile& profile, const Capping& capping, double bias) {
  const double once = 5 * profile.u_work * bias + profile.u_work * (capping.capped + bias);
  return (capping.error + once) * (1 + 32 * profile.u_work);  // products of roundings
}

/// How far the computed score of any key of the row may be off, and so their maximum.
double largest_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  ScoreTerms largest = terms;
  largest.absolute_products = std::max(terms.absolute_products, terms.largest_products);
  if (!terms.modified) {
    return gamma_bound(static_cast<double>(terms.head_dim), profile.u_accumulate) *
           largest.absolute_products;
  }
  const double scaled = std::max(terms.scaled_score, terms.largest_scaled);
  const double before = dot_error(profile, largest) * (1 + 6 * profile.u_work);
  Capping capping = cap_score(profile, 0, scaled, before);
  capping.error += (profile.tanh_error + 3 * profile.u_work) * capping.capped +
                   terms.softcap * profile.tanh_floor +
                   profile.product_underflow * (terms.softcap + 2);
  return modified_error(profile, capping, std::max(terms.bias, terms.largest_bias));
}

}  // namespace

NumericsProfile carried_profile(DType dtype, std::int64_t max_rescales) {
  NumericsProfile profile{.out_dtype = dtype, .max_rescales = max_rescales};
  if (dtype == DType::f64) {
    profile.tanh_error = 0x1p-50;
    profile.u_accumulate = profile.u_work = profile.u_lse = 0x1p-53;
    profile.exp_error = 0x1p-51;
    profile.product_underflow = profile.query_underflow = 0x1p-1074;
    profile.exp_underflow = 0x1p-1022;
    profile.max_finite = dtype_info(DType::f64).max_finite;
  }
  return profile;
}

std::int64_t stores_before_the_last(std::int64_t tokens, std::int64_t per_store,
                                    std::int64_t heads) {
  if (per_store == 0 || tokens == 0) return 0;
  return heads * ((tokens - 1) / per_store + 1) - 1;
}

double gamma_bound(double n, double u) {
  const double product = n * u;
  if (!(product < 1)) return kInfinity;
  return no_promise_unless_valid(product / (1 - product));
}

bool travels_exactly(const NumericsProfile& profile) {
  return profile.u_wire == 0 && profile.wire_floor == 0 && profile.wire_underflow == 0;
}

double wire_error(const NumericsProfile& profile, double magnitude, double largest) {
  if (!(largest <= profile.wire_max)) return kInfinity;
  return profile.u_wire * magnitude + profile.wire_floor * largest + profile.wire_underflow;
}

double wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  const double each = wire_error(profile, 0, terms.key_largest);
  if (!(each < kInfinity)) return kInfinity;  // 0 · inf is no number
  return (profile.u_wire * terms.absolute_products + terms.scale * terms.query_magnitude * each) *
         kOutward;
}

double largest_wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  ScoreTerms largest = terms;
  largest.absolute_products = std::max(terms.absolute_products, terms.largest_products);
  largest.key_largest = std::max(terms.key_largest, terms.any_key_largest);
  return wire_score_error(profile, largest);
}

double half_ulp(DType dtype, double magnitude) {
  const DTypeInfo& info = dtype_info(dtype);
  const double x = std::abs(magnitude);
  if (!(x < kInfinity)) return kInfinity;
  if (x <= info.min_normal) return half_least(dtype);
  const double bounded = std::min(x, info.max_finite);
  const double half = std::ldexp(info.unit_roundoff, std::ilogb(bounded));
  return x >= info.max_finite + half ? kInfinity : std::max(half, half_least(dtype));
}

double score_error(const NumericsProfile& profile, const ScoreTerms& sent) {
  const double wire = wire_score_error(profile, sent);
  const ScoreTerms terms = after_the_wire(profile, sent);
  const double rescales = static_cast<double>(profile.max_rescales);
  const double products = terms.absolute_products;
  const double unscaled = terms.scale > 0 ? products / terms.scale : products;
  // Twice: a kernel in powers of two multiplies by log2 e.
  if (!(2 * std::max(products, unscaled) <= profile.max_finite)) return kInfinity;

  const double drift = largest_error(profile, terms);
  const double top = terms.largest_score + drift;
  const double gap = terms.distance_from_max + 2 * drift;
  const double own = terms.modified
                         ? modified_error(profile, cap_own(profile, terms, wire), terms.bias)
                         : dot_error(profile, terms) + wire;
  if (terms.modified && !(2 * top <= profile.max_finite)) return kInfinity;
  return no_promise_unless_valid(own + 5 * profile.u_work * gap +
                                 (2 * rescales + 2) * profile.u_work * top +
                                 (rescales + 1) * (profile.exp_error + 2 * profile.u_work));
}

double capped_error(const NumericsProfile& profile, const ScoreTerms& sent) {
  const double wire = wire_score_error(profile, sent);
  return no_promise_unless_valid(cap_own(profile, after_the_wire(profile, sent), wire).error *
                                 (1 + 32 * profile.u_work));
}

double weight_error(double exponent, double error) {
  // For large errors e^(exponent + error), which also survives the underflow of e^exponent.
  const double value =
      error <= 1 ? std::exp(exponent) * std::expm1(error) : std::exp(exponent + error);
  return error < kInfinity ? no_promise_unless_valid(value) : kInfinity;
}

double merge_error(const NumericsProfile& profile, double largest_score, std::int64_t keys) {
  if (profile.lse_merges == 0 || keys == 0) return 0;
  const double lse = largest_score + std::log(static_cast<double>(keys)) + 1;
  const double once =
      profile.exp_error + 2 * (profile.u_lse + 3 * profile.u_work) * lse + 6 * profile.u_work;
  return no_promise_unless_valid(std::expm1(static_cast<double>(profile.lse_merges) * once));
}

double output_bound(const NumericsProfile& profile, const OutputTerms& terms) {
  if (terms.keys == 0) return 0;
  const double rho = terms.weighted_rho;
  const double lift = lift_of(terms.max_error, terms.row_sum);
  const double magnitude = moved_magnitude(terms);
  const double largest_sum = magnitude * terms.row_sum * std::exp(terms.max_error);
  if (!(2 * largest_sum <= profile.max_finite)) return kInfinity;

  const RowSumError sum = row_sum_error(profile, terms.keys, lift);
  const double denominator = (1 - rho) * (1 - sum.relative) - sum.absolute;
  if (!(rho < 1) || !(sum.relative < 1) || !(denominator > 0)) return kInfinity;
  const double numerator =
      numerator_error(profile, terms, lift) + (sum.relative * (1 + rho) + sum.absolute) * terms.out;
  const double quotient = numerator / denominator;
  const double finished =
      quotient + 3 * profile.u_work * (terms.out + quotient) + profile.product_underflow;
  return no_promise_unless_valid(finished + half_ulp(profile.out_dtype, terms.out + finished));
}

double lse_bound(const NumericsProfile& profile, const LseTerms& terms) {
  if (terms.keys == 0) return 0;
  const double rho = terms.weighted_rho;
  const RowSumError sum =
      row_sum_error(profile, terms.keys, lift_of(terms.max_error, terms.row_sum));
  const double relative = rho + sum.relative * (1 + rho) + sum.absolute;
  if (!(rho < 1) || !(relative < 1)) return kInfinity;

  // A kernel in powers of two: scale and its rounding (4), back to natural logarithms (2).
  const double sizes = 6 * std::abs(terms.row_max) + 4 * std::abs(std::log(terms.row_sum)) +
                       2 * std::abs(terms.lse) + 12 * terms.max_error + 4;
  const double computed = -std::log1p(-relative) + terms.merge_error + profile.u_work * sizes;
  const double stored = profile.u_lse * (std::abs(terms.lse) + computed);
  return no_promise_unless_valid(computed + stored + profile.product_underflow);
}

double probability_error(const NumericsProfile& profile, const ProbabilityTerms& terms) {
  const ScoreTerms score = after_the_wire(profile, terms.score);
  const double top = score.largest_score + largest_error(profile, score);
  // Against lse the errors of scaling are not shared, and lse itself is converted once more.
  const double conversion =
      profile.u_work * (5 * top + 4 * (std::abs(terms.lse) + terms.lse_error));
  return weight_error(0, score_error(profile, terms.score) + conversion + terms.lse_error);
}

double score_gradient_error(const NumericsProfile& profile, const ScoreGradientTerms& terms) {
  const double rho = terms.relative_error;
  const double lost = profile.exp_underflow;  // absolute, of P itself
  const double probability = terms.probability * (1 + rho) + lost;
  const double inner =
      terms.product_error + terms.row_error + 2 * profile.u_work * terms.difference;
  const double computed = (terms.probability * rho + lost) * terms.difference +
                          probability * inner * (1 + 2 * profile.u_work) +
                          profile.product_underflow;
  // dS is cast like P before the last two matrix products.
  const double cast = profile.u_probability * (terms.probability * terms.difference + computed) +
                      profile.p_underflow;
  return no_promise_unless_valid(computed + cast);
}

double gradient_bound(const NumericsProfile& profile, const GradientTerms& terms) {
  if (terms.terms == 0) return 0;
  const double count = static_cast<double>(terms.terms);
  const double gamma =
      gamma_bound(count + 2 * static_cast<double>(profile.max_rescales) + 1, profile.u_accumulate);
  const double magnitude = terms.magnitude + terms.propagated;
  if (!(magnitude * std::max(terms.scale, 1.0) * (1 + gamma) <= profile.max_finite)) {
    return kInfinity;
  }
  const double added = terms.scale * (terms.propagated + (gamma + profile.u_query) * magnitude +
                                      profile.product_underflow * 2 * count) +
                       profile.product_underflow * (count + 1);
  const double stored =
      storing_error(profile, terms, terms.scale * terms.magnitude + added, magnitude * (1 + gamma));
  const double sum = added + stored * (1 + gamma);
  const double computed = sum + 3 * profile.u_work * (terms.value + sum);
  return no_promise_unless_valid(computed + half_ulp(profile.out_dtype, terms.value + computed));
}

}  // namespace ringlab
