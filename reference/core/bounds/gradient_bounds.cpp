// Error bounds of gradients, and of the probabilities and score gradients they are made of.
#include <algorithm>
#include <cmath>

#include "reference/core/bounds/parts.h"

namespace ringlab {
namespace {

/// Error of storing partial gradients in the gradients' type and reading them back. `scaled` and
/// `unscaled` bound their size, as a kernel may scale them before or after.
double storing_error(const NumericsProfile& profile, const GradientTerms& terms, double scaled,
                     double unscaled) {
  // Storing a number of that type again changes nothing, so t terms are rounded t times at most,
  // the last time when the sum is complete.
  const std::int64_t stores = std::min(terms.stores, terms.terms - 1);
  if (stores <= 0) return 0;
  const auto count = static_cast<double>(stores);
  const double gamma = gamma_bound(count, dtype_info(profile.out_dtype).unit_roundoff);
  const double largest = std::max(scaled, unscaled) * (1 + gamma);
  if (std::isinf(half_ulp(profile.out_dtype, largest))) return kNoBound;
  const double lost = half_least(profile.out_dtype) * std::max(terms.scale, 1.0);
  // A term passes `stores` roundings, but each sum beside it may lose half a subnormal as well.
  const auto losses = static_cast<double>(std::min(stores * terms.heads, terms.terms));
  return gamma * scaled + losses * lost * (1 + gamma);
}

/// Losses of factors that underflow before they are multiplied. Two products make a scaled dS: that
/// of the scale with dP and with D, or with dS itself.
double lost_before_products(const NumericsProfile& profile, const GradientTerms& terms) {
  const double once = std::max(terms.scale, 1.0);
  const double rounded =
      factor_underflow(profile) * once * (terms.first_factors + terms.second_factors);
  if (!terms.is_scaled) return rounded;
  return rounded + prescaled_underflow(profile) * once * terms.first_factors +
         2 * profile.product_underflow * terms.second_factors;
}

}  // namespace

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
    return kNoBound;
  }
  const double relative = compounded(gamma, compounded(factor_error(profile), profile.u_query));
  const double added =
      terms.scale *
          (terms.propagated + relative * magnitude + profile.product_underflow * 2 * count) +
      profile.product_underflow * (count + 1) + lost_before_products(profile, terms);
  const double stored =
      storing_error(profile, terms, terms.scale * terms.magnitude + added, magnitude * (1 + gamma));
  const double sum = added + stored * (1 + gamma);
  const double computed = sum + 3 * profile.u_work * (terms.value + sum);
  return no_promise_unless_valid(computed + half_ulp(profile.out_dtype, terms.value + computed));
}

}  // namespace ringlab
