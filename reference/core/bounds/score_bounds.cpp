// Error bounds of a score: its product, the wire, soft-capping, ALiBi.
#include <algorithm>
#include <cmath>

#include "reference/core/bounds/parts.h"

namespace ringlab {
namespace {

/// Relative error of scale · q·k, whose factors are rounded and whose products are summed up.
double relative_dot_error(const NumericsProfile& profile, std::int64_t head_dim) {
  const double gamma = gamma_bound(static_cast<double>(head_dim), profile.u_accumulate);
  return compounded(gamma, compounded(factor_error(profile), profile.u_query));
}

/// Error of scale · q·k_j, but for the constant that all keys of a row share.
double dot_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  const double once = std::max(terms.scale, 1.0);
  const double factors = prescaled_underflow(profile) + factor_underflow(profile);
  const double underflow =
      profile.product_underflow * (static_cast<double>(terms.head_dim) * once + 2) +
      factors * once * (terms.key_magnitude + terms.query_magnitude);
  return relative_dot_error(profile, terms.head_dim) * terms.absolute_products + underflow;
}

/// Bounds of the result of soft-capping a scaled score.
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

}  // namespace

double wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  const double each = wire_error(profile, 0, terms.key_largest);
  if (!(each < kNoBound)) return kNoBound;  // 0 · inf is no number
  return (profile.u_wire * terms.absolute_products + terms.scale * terms.query_magnitude * each) *
         kBoundOutward;
}

double largest_wire_score_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  ScoreTerms largest = terms;
  largest.absolute_products = std::max(terms.absolute_products, terms.largest_products);
  largest.key_largest = std::max(terms.key_largest, terms.any_key_largest);
  return wire_score_error(profile, largest);
}

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

double largest_error(const NumericsProfile& profile, const ScoreTerms& terms) {
  ScoreTerms largest = terms;
  largest.absolute_products = std::max(terms.absolute_products, terms.largest_products);
  if (!terms.modified) {
    return relative_dot_error(profile, terms.head_dim) * largest.absolute_products;
  }
  const double scaled = std::max(terms.scaled_score, terms.largest_scaled);
  const double before = dot_error(profile, largest) * (1 + 6 * profile.u_work);
  Capping capping = cap_score(profile, 0, scaled, before);
  capping.error += (profile.tanh_error + 3 * profile.u_work) * capping.capped +
                   terms.softcap * profile.tanh_floor +
                   profile.product_underflow * (terms.softcap + 2);
  return modified_error(profile, capping, std::max(terms.bias, terms.largest_bias));
}

double score_error(const NumericsProfile& profile, const ScoreTerms& sent) {
  const double wire = wire_score_error(profile, sent);
  const ScoreTerms terms = after_the_wire(profile, sent);
  const double rescales = static_cast<double>(profile.max_rescales);
  const double products = terms.absolute_products;
  const double unscaled = terms.scale > 0 ? products / terms.scale : products;
  // Twice: a kernel in powers of two multiplies by log2 e.
  if (!(2 * std::max(products, unscaled) <= profile.max_finite)) return kNoBound;

  const double drift = largest_error(profile, terms);
  const double top = terms.largest_score + drift;
  const double gap = terms.distance_from_max + 2 * drift;
  const double own = terms.modified
                         ? modified_error(profile, cap_own(profile, terms, wire), terms.bias)
                         : dot_error(profile, terms) + wire;
  if (terms.modified && !(2 * top <= profile.max_finite)) return kNoBound;
  return no_promise_unless_valid(own + 5 * profile.u_work * gap +
                                 (2 * rescales + 2) * profile.u_work * top +
                                 (rescales + 1) * (profile.exp_error + 2 * profile.u_work));
}

double capped_error(const NumericsProfile& profile, const ScoreTerms& sent) {
  const double wire = wire_score_error(profile, sent);
  return no_promise_unless_valid(cap_own(profile, after_the_wire(profile, sent), wire).error *
                                 (1 + 32 * profile.u_work));
}

}  // namespace ringlab
