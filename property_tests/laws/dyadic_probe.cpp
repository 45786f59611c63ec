// Y: scores that are integer multiples of ln 2, so that every weight is a power of two.
//
// A kernel that works in base 2 gets the weights exactly; one that calls exp() gets each within its
// own error. So the law allows the declared error of the exponent, and nothing for the dot product,
// which is an integer unless q is scaled first or factors are rounded.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "property_tests/laws/probes.h"

namespace ringlab::verify {
namespace {

long double weight_below(std::int64_t below) { return std::ldexp(1.0L, static_cast<int>(-below)); }

/// Σ_c |q_c k_jc| of a row and its visible keys, for the bound of a kernel that scales q first, or
/// rounds q and k; zeros for other kernels, whose products are integers.
std::vector<double> inexact_products(const NumericsProfile& profile, const Trial& trial,
                                     const RowWeights& row, std::int64_t b, std::int64_t h,
                                     std::int64_t i) {
  std::vector<double> products(row.keys.size());
  const bool has_any = profile.u_query > 0 || profile.u_product > 0;
  for (std::size_t n = 0; has_any && n < products.size(); ++n) {
    for (std::int64_t c = 0; c < trial.shape().head_dim; ++c) {
      products[n] +=
          std::abs(trial.data.q(b, h, i, c) * trial.data.k(b, h / trial.group(), row.keys[n], c));
    }
  }
  return products;
}

/// The profile's bound of one row with the error of the dot products left out, but for `products`.
/// `unit_error` is |unit - ln 2|: how far the weights are from powers of two.
class DyadicBound {
 public:
  DyadicBound(const NumericsProfile& profile, RowWeights row, const std::vector<double>& products,
              double unit, double unit_error, std::int64_t head_dim)
      : row_(std::move(row)) {
    const double most = products.empty() ? 0 : *std::max_element(products.begin(), products.end());
    for (std::size_t n = 0; n < row_.below.size(); ++n) {
      const auto steps = static_cast<double>(row_.below[n]);
      const double error =
          score_error(profile, {.head_dim = most > 0 ? head_dim : 0,
                                .absolute_products = unit * products[n],
                                .distance_from_max = unit * steps,
                                .largest_score = unit * static_cast<double>(row_.largest),
                                .largest_products = unit * most});
      rho_.push_back(std::expm1(error + steps * unit_error));
    }
  }

  /// The terms of one channel, whose exact output is `out`; value(j) is v of key j.
  OutputTerms terms(double out, const std::function<double(std::int64_t)>& value) const {
    OutputTerms terms{.keys = static_cast<std::int64_t>(row_.keys.size()),
                      .row_sum = static_cast<double>(row_.sum),
                      .out = std::abs(out)};
    for (std::size_t k = 0; k < row_.keys.size(); ++k) {
      const auto weight = static_cast<double>(row_.weights[k] / row_.sum);
      const double v = value(row_.keys[k]);
      terms.weighted_rho += weight * rho_[k];
      terms.weighted_spread += weight * rho_[k] * std::abs(v - out);
      terms.weighted_magnitude += weight * std::abs(v);
      terms.magnitude_sum += std::abs(v);
    }
    return terms;
  }

 private:
  RowWeights row_;
  std::vector<double> rho_;  // e^E - 1 per visible key
};

ForwardTolerance dyadic_tolerance(const NumericsProfile& profile, const Trial& trial,
                                  const IntegerScores& scores, const AttentionOutput& expected) {
  const Shape& shape = trial.shape();
  const double unit_error = std::abs(scores.unit - std::log(2.0));
  const Pairs visible = visible_pairs(trial.problem);
  ForwardTolerance allowed{Tensor<double>(shape.out()), Tensor<double>(shape.lse())};
  for_each_index(shape.lse(), [&](auto b, auto h, auto i, auto) {
    const RowWeights row = row_weights(visible, scores, b, h, i);
    if (row.keys.empty()) return;
    const DyadicBound bound(profile, row, inexact_products(profile, trial, row, b, h, i),
                            scores.unit, unit_error, shape.head_dim);
    OutputTerms terms;
    for (std::int64_t c = 0; c < shape.v_dim; ++c) {
      terms = bound.terms(expected.out(b, h, i, c),
                          [&](std::int64_t j) { return trial.data.v(b, h / trial.group(), j, c); });
      allowed.out(b, h, i, c) = output_bound(profile, terms);
    }
    allowed.lse(b, h, i, 0) =
        lse_bound(profile, {.keys = terms.keys,
                            .weighted_rho = terms.weighted_rho,
                            .row_max = scores.unit * static_cast<double>(row.top),
                            .row_sum = terms.row_sum,
                            .lse = expected.lse(b, h, i, 0)});
  });
  return allowed;
}

}  // namespace

/// Holds by construction: every score is an integer in units of ln 2. Finds a missed or doubled
/// rescale, which is off by a whole factor of two where the bound allows some ulps, and constants
/// of log2 e with too few digits.
LawResult dyadic_probe(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  trial.problem.scale = ln_2_as_scale(c.dtype);
  trial.data.q = random_integers(c.shape.q(), 2, c.seed);
  trial.data.k = random_integers(c.shape.k(), 3, c.seed + 1);
  trial.data.v = random_integers(c.shape.v(), 8, c.seed + 2);
  IntegerScores scores = integer_scores(trial, trial.problem.scale);
  scores.weight = weight_below;
  const AttentionOutput expected = probe_answer(trial, scores).expected;
  const ForwardTolerance allowed =
      dyadic_tolerance(subject.profile(trial.problem, trial.options), trial, scores, expected);
  const AttentionOutput got = attend(subject, trial);
  return both(matches("o", got.out, expected.out, allowed.out),
              matches("lse", got.lse, expected.lse, allowed.lse));
}

}  // namespace ringlab::verify
