#include "reference/attention/row_errors.h"

#include <algorithm>
#include <cmath>

#include "reference/attention/compensated.h"

namespace ringlab {

// Finds errors in this order: the mean needs the errors of probabilities and of values.
void RowErrors::take(const RowAddress& at, const QueryRow& row, const RowGradients& gradients,
                     const double* upstream) {
  row_ = &row;
  gradients_ = &gradients;
  find_probability_errors(at);
  find_value_errors(at, upstream);
  mean_ = mean_error(at, upstream);
}

/// The errors that the wire, and rounded factors, bring to dP_ij = Σ_c dO_ic v_jc.
void RowErrors::find_value_errors(const RowAddress& at, const double* upstream) {
  const double relative = factor_error(profile_), absolute = factor_underflow(profile_);
  factor_errors_.clear();
  for (std::size_t n = 0; n < row_->key.size(); ++n) {
    const double* v = channels_of(input_.v, at.batch, at.kv_head, row_->key[n], v_buffer_);
    double largest = 0, error = 0;
    // fp8 rounds with the scale of a block, so its floor depends on the largest value of the row.
    for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
      largest = std::max(largest, std::abs(v[c]));
    }
    for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
      const double dout = std::abs(upstream[c]), value = std::abs(v[c]);
      const double wire = wire_error(profile_, value, largest);
      error += dout * wire + relative * dout * (value + wire) + absolute * (dout + value + wire);
    }
    factor_errors_.push_back(row_->factor_of(n) * error * kOutward);
  }
}

void RowErrors::find_probability_errors(const RowAddress& at) {
  const ScoreRange range(*row_, input_, at);
  relative_.clear();
  steepness_.clear();
  for (std::size_t n = 0; n < row_->key.size(); ++n) {
    const ScoreTerms terms = range.terms(*row_, n);
    steepness_.push_back(steepness_of(terms, n));
    relative_.push_back(probability_error(
        profile_, {.score = terms,
                   .lse = forward_.exact.lse(at.batch, at.q_head, at.query, 0),
                   .lse_error = forward_.tolerance.lse(at.batch, at.q_head, at.query, 0)}));
  }
}

/// 1 - t² of a t = tanh that is off by as much as the capped score is, relative to the cap.
Steepness RowErrors::steepness_of(const ScoreTerms& terms, std::size_t n) const {
  if (row_->steepness.empty() || terms.softcap == 0) return {};
  const double off = capped_error(profile_, terms) / terms.softcap;
  // tanh of the score, rounded outwards, at most 1.
  const double t = std::min(std::tanh(terms.scaled_score / terms.softcap) * kOutward, 1.0);
  const double error = (2 * t + off) * off + 6 * profile_.u_work;
  return {row_->steepness[n], row_->steepness_error[n], error < 2 ? error * kOutward : 2};
}

/// The error of dP_ij, that of its factors included.
double RowErrors::pair_product_error(std::size_t n) const {
  const double factors = factor_errors_[n];
  const double products = gradients_->products[n] * kOutward + factors;
  if (row_->factor.empty()) return product_error(gradients_->products[n] + factors) + factors;
  if (row_->factor[n] == 0) return 0;  // a dropped pair has dP = 0 exactly
  const double channels = static_cast<double>(input_.problem.shape.v_dim);
  const double gamma = gamma_bound(channels, profile_.u_accumulate);
  return gamma * products + factors + kDropoutRoundings * profile_.u_work * products * (1 + gamma) +
         (row_->factor[n] * channels + kDropoutRoundings) * profile_.product_underflow * kOutward;
}

double RowErrors::product_error(double products) const {
  const double channels = static_cast<double>(input_.problem.shape.v_dim);
  return gamma_bound(channels, profile_.u_accumulate) * products +
         channels * profile_.product_underflow;
}

// D_i is computed in one of two ways: from the stored output, or from P and dP. The
// larger bound holds for both.
double RowErrors::mean_error(const RowAddress& at, const double* upstream) const {
  double stored = 0, products = 0;
  for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
    const double tolerance = forward_.tolerance.out(at.batch, at.q_head, at.query, c);
    const double out = std::abs(forward_.exact.out(at.batch, at.q_head, at.query, c)) + tolerance;
    stored += std::abs(upstream[c]) * tolerance;
    products += std::abs(upstream[c]) * out;
  }
  double summed = 0, magnitude = 0;
  for (std::size_t n = 0; n < relative_.size(); ++n) {
    const double p = gradients_->probability[n] + gradients_->probability_error[n];
    const double computed = p * (1 + relative_[n]) + profile_.exp_underflow;
    summed += (p * relative_[n] + profile_.exp_underflow) * gradients_->products[n] +
              computed * pair_product_error(n);
    magnitude += computed * (gradients_->products[n] + factor_errors_[n]);
  }
  const double keys = static_cast<double>(relative_.size());
  // The larger of the two ways.
  return std::max(stored + product_error(products),
                  summed + gamma_bound(keys + 1, profile_.u_accumulate) * magnitude +
                      keys * profile_.product_underflow) *
         kOutward;
}

PairErrors RowErrors::pair(std::size_t n) const {
  const double relative = relative_[n];
  const double p = gradients_->probability[n] + gradients_->probability_error[n];
  const double difference = std::abs(gradients_->difference[n]) + gradients_->difference_error[n];
  ScoreGradientTerms terms{.probability = p,
                           .relative_error = relative,
                           .difference = difference,
                           .product_error = pair_product_error(n)};
  PairErrors pair;
  add_kept(n, pair);
  pair.score = p * difference;
  pair.own_score_error = score_gradient_error(profile_, terms);
  // `own_score_error` without D_i's error, which is the same for all keys of the row and is
  // multiplied by |Σ P k| for dq.
  terms.row_error = mean_;
  pair.score_error = score_gradient_error(profile_, terms);
  pair.row_weight = gradients_->probability[n];
  pair.row_share =
      p * (relative + (profile_.u_probability + 4 * profile_.u_work) * (1 + relative)) +
      gradients_->probability_error[n] + profile_.exp_underflow;
  if (!row_->steepness.empty()) flatten(steepness_[n], pair);
  return pair;
}

void RowErrors::add_kept(std::size_t n, PairErrors& pair) const {
  const double factor = row_->factor_of(n);
  if (factor == 0) return;
  pair.kept = gradients_->kept[n] + gradients_->kept_error[n];
  const double dropout = row_->factor.empty() ? 0 : kDropoutRoundings * profile_.u_work;
  pair.kept_error = pair.kept * relative_[n] + factor * profile_.exp_underflow +
                    (profile_.u_probability + dropout) * pair.kept * (1 + relative_[n]) +
                    std::max(factor, 1.0) * profile_.p_underflow +
                    (dropout > 0 ? profile_.product_underflow : 0);
}

/// dS_ij times the slope of soft-capping, which may be cast after it.
void RowErrors::flatten(const Steepness& slope, PairErrors& pair) const {
  const double off = slope.own + slope.error;
  const auto flat = [&](double error) {
    return (slope.largest() * error + off * pair.score +
            2 * profile_.u_work * slope.largest() * (pair.score + error)) *
               kOutward +
           profile_.product_underflow + profile_.p_underflow;
  };
  pair.score_error = flat(pair.score_error);
  pair.own_score_error = flat(pair.own_score_error);
  pair.score *= (slope.value + slope.own) * kOutward;
  pair.row_share = (slope.largest() * pair.row_share +
                    pair.row_weight * (off + 2 * profile_.u_work * slope.largest())) *
                       kOutward +
                   profile_.product_underflow;
  pair.row_weight *= slope.value;
}

}  // namespace ringlab
