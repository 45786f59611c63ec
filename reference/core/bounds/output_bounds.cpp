// Error bounds of out and lse: sums over the keys of a row.
#include <algorithm>
#include <cmath>

#include "reference/core/bounds/parts.h"

namespace ringlab {
namespace {

/// Relative error of the row sum, and of each product's way into the accumulator.
double accumulation_error(const NumericsProfile& profile, std::int64_t terms) {
  const std::int64_t chain = profile.accumulation_chain;
  const double operations = static_cast<double>(chain > 0 ? std::min(chain, terms) : terms) +
                            2.0 * static_cast<double>(profile.max_rescales) + 1.0;
  return gamma_bound(operations, profile.u_accumulate);
}

/// Underflow error of one key's weight, relative to the row maximum: of its own exp, and of one per
/// rescale factor. Underflowing products are three per key however many rescales there are,
/// because a rescale that merges nothing multiplies by one: n terms, at most 2 (n - 1) partial
/// sums.
double weight_underflow(const NumericsProfile& profile) {
  return profile.exp_underflow * (static_cast<double>(profile.max_rescales) + 1.0);
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

/// Error of Σ_j w_j v_j as computed, without that of the row sum it is divided by.
double numerator_error(const NumericsProfile& profile, const OutputTerms& terms, double lift) {
  const double gamma = accumulation_error(profile, terms.keys);
  const double magnitude = moved_magnitude(terms);
  const double magnitude_sum = terms.magnitude_sum + terms.wire_sum;
  const double factors = factor_error(profile);
  const double cast = compounded(factors, profile.u_probability) * magnitude +
                      profile.p_underflow * (1 + factors) * lift * magnitude_sum +
                      factor_underflow(profile) * lift *
                          (magnitude_sum + static_cast<double>(terms.keys) * terms.largest_factor);
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

}  // namespace

double output_bound(const NumericsProfile& profile, const OutputTerms& terms) {
  if (terms.keys == 0) return 0;
  const double rho = terms.weighted_rho;
  const double lift = lift_of(terms.max_error, terms.row_sum);
  const double magnitude = moved_magnitude(terms);
  const double largest_sum = magnitude * terms.row_sum * std::exp(terms.max_error);
  if (!(2 * largest_sum <= profile.max_finite)) return kNoBound;

  const RowSumError sum = row_sum_error(profile, terms.keys, lift);
  const double denominator = (1 - rho) * (1 - sum.relative) - sum.absolute;
  if (!(rho < 1) || !(sum.relative < 1) || !(denominator > 0)) return kNoBound;
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
  if (!(rho < 1) || !(relative < 1)) return kNoBound;

  // A kernel in powers of two: scale and its rounding (4), back to natural logarithms (2).
  const double sizes = 6 * std::abs(terms.row_max) + 4 * std::abs(std::log(terms.row_sum)) +
                       2 * std::abs(terms.lse) + 12 * terms.max_error + 4;
  const double computed = -std::log1p(-relative) + terms.merge_error + profile.u_work * sizes;
  const double stored = profile.u_lse * (std::abs(terms.lse) + computed);
  return no_promise_unless_valid(computed + stored + profile.product_underflow);
}

}  // namespace ringlab
