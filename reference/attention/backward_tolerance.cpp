#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/attention/compensated.h"
#include "reference/attention/exact.h"
#include "reference/attention/row_gradients.h"
#include "reference/core/parallel_rows.h"

namespace ringlab {
namespace {

/// The sums of gradient_bound for one token, one entry per channel.
class BoundSums {
 public:
  /// Partial sums are stored `stores` times before they are complete.
  BoundSums(std::int64_t channels, std::int64_t stores)
      : stores_(stores), propagated_(static_cast<std::size_t>(channels)), magnitude_(propagated_) {}

  /// Adds a product a · values[c], with |a| <= size and |computed a - a| <= error.
  void add(double size, double error, const double* values) {
    ++terms_;
    for (std::size_t c = 0; c < propagated_.size(); ++c) {
      propagated_[c] += error * std::abs(values[c]);
      magnitude_[c] += size * std::abs(values[c]);
    }
  }
  /// Adds that the values of that product were themselves off by as much.
  void add_value_errors(double size, double error, const std::vector<double>& value_errors) {
    for (std::size_t c = 0; c < propagated_.size(); ++c) {
      propagated_[c] += (size + error) * value_errors[c];
      magnitude_[c] += size * value_errors[c];
    }
  }
  /// Adds an error that is not that of one product.
  void add_error(std::size_t c, double error) { propagated_[c] += error; }

  void clear() {
    terms_ = 0;
    std::ranges::fill(propagated_, 0.0);
    std::ranges::fill(magnitude_, 0.0);
  }

  double bound(const NumericsProfile& profile, std::size_t c, double scale, double value) const {
    return gradient_bound(profile, {.terms = terms_,
                                    .propagated = propagated_[c] * kOutward,
                                    .magnitude = magnitude_[c] * kOutward,
                                    .scale = std::abs(scale),
                                    .value = value,
                                    .stores = stores_});
  }

 private:
  std::int64_t terms_ = 0, stores_ = 0;
  std::vector<double> propagated_, magnitude_;
};

/// Bounds of one visible pair as the subject sees it. dS_ij is the gradient of the scaled score:
/// behind soft-capping.
struct PairErrors {
  double kept = 0;             ///< upper bound of f_ij P_ij
  double kept_error = 0;       ///< of f_ij P_ij after the cast that P·dO uses
  double score = 0;            ///< upper bound of |dS_ij|
  double score_error = 0;      ///< of dS_ij, δD_i included
  double own_score_error = 0;  ///< of dS_ij, δD_i left out
  double row_weight = 0;       ///< P_ij times the steepness: what of dS_ij multiplies D_i
  double row_share = 0;        ///< what of its error multiplies δD_i
};

/// The slope of soft-capping for one pair, within `own`, and what a subject may be off by.
struct Steepness {
  double value = 1;
  double own = 0;
  double error = 0;
  double largest() const { return value + own + error; }
};

/// The inputs of the bounds of all heads.
struct BoundInputs {
  const AttentionInput& input;
  const TensorView<const double>& dout;
  const ExactBackward& exact;
  const NumericsProfile& profile;
  const RowReader& reader;
  const ExactForward& forward;
  const ForwardTolerance& forward_tolerance;
};

/// Takes K/V heads of batches, one after the other.
class BackwardBounds {
 public:
  BackwardBounds(const BoundInputs& given, BackwardTolerance& result)
      : input_(given.input),
        dout_(given.dout),
        exact_(given.exact),
        profile_(given.profile),
        reader_(given.reader),
        forward_(given.forward),
        forward_tolerance_(given.forward_tolerance),
        result_(result) {
    const Shape& shape = input_.problem.shape;
    const std::size_t keys = static_cast<std::size_t>(shape.kv_tokens);
    dk_.assign(keys, BoundSums(shape.head_dim, profile_.key_gradient_stores));
    dv_.assign(keys, BoundSums(shape.v_dim, profile_.key_gradient_stores));
  }

  /// All query heads that read this K/V head.
  void operator()(std::int64_t head_of_batch) {
    for (BoundSums& sums : dk_) sums.clear();
    for (BoundSums& sums : dv_) sums.clear();
    const std::int64_t kv_heads = input_.problem.shape.kv_heads;
    const std::int64_t batch = head_of_batch / kv_heads, kv_head = head_of_batch % kv_heads;
    for (std::int64_t row = 0; row < reader_.rows(); ++row) {
      const RowAddress at = reader_.address(row);
      if (at.batch == batch && at.kv_head == kv_head) add_row(at);
    }
    for (std::int64_t key = 0; key < input_.problem.shape.kv_tokens; ++key) {
      const RowAddress at{.batch = batch, .q_head = kv_head, .kv_head = kv_head, .query = key};
      const std::size_t n = static_cast<std::size_t>(key);
      write(dk_[n], at, input_.problem.scale, {exact_.dk, exact_.dk_error, result_.dk});
      write(dv_[n], at, 1, {exact_.dv, exact_.dv_error, result_.dv});
    }
  }

 private:
  /// An exact gradient, how far it may be off itself, and where its tolerance is written.
  struct BoundTarget {
    const Tensor<double>& exact;
    const Tensor<double>& error;
    Tensor<double>& tolerance;
  };

  void add_row(const RowAddress& at) {
    reader_.read(at, row_);
    if (row_.empty()) return;
    const RowGradients gradients = row_gradients(input_, dout_, at, row_);
    const double* q = channels_of(input_.q, at.batch, at.q_head, at.query, q_buffer_);
    const double* upstream = channels_of(dout_, at.batch, at.q_head, at.query, dout_buffer_);
    const std::vector<double> relative = probability_errors(at);
    find_value_errors(at, upstream);
    const double row_error = mean_error(at, gradients, relative, upstream);
    BoundSums dq(input_.problem.shape.head_dim, profile_.query_gradient_stores);
    std::vector<double> mean_key(static_cast<std::size_t>(input_.problem.shape.head_dim));
    std::vector<double> mean_share(mean_key.size());
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const PairErrors pair = pair_errors(gradients, n, relative[n], row_error);
      const double* k = channels_of(input_.k, at.batch, at.kv_head, row_.key[n], k_buffer_);
      find_key_errors(k);
      dq.add(pair.score, pair.own_score_error, k);
      dq.add_value_errors(pair.score, pair.own_score_error, key_errors_);
      for (std::size_t c = 0; c < mean_key.size(); ++c) {
        mean_key[c] += pair.row_weight * k[c];
        mean_share[c] += pair.row_share * (std::abs(k[c]) + key_errors_[c]) +
                         (pair.row_weight + pair.row_share) * key_errors_[c];
      }
      const std::size_t key = static_cast<std::size_t>(row_.key[n]);
      dk_[key].add(pair.score, pair.score_error, q);
      dv_[key].add(pair.kept, pair.kept_error, upstream);
    }
    // δD_i is the same for all keys of the row, so it reaches dq through Σ_j P_ij k_j.
    for (std::size_t c = 0; c < mean_key.size(); ++c) {
      dq.add_error(c, row_error * (std::abs(mean_key[c]) + mean_share[c]));
    }
    write(dq, at, input_.problem.scale, {exact_.dq, exact_.dq_error, result_.dq});
  }

  /// The errors that the wire brings to one key, per channel.
  void find_key_errors(const double* k) {
    key_errors_.assign(static_cast<std::size_t>(input_.problem.shape.head_dim), 0.0);
    double largest = 0;
    for (std::size_t c = 0; c < key_errors_.size(); ++c)
      largest = std::max(largest, std::abs(k[c]));
    for (std::size_t c = 0; c < key_errors_.size(); ++c) {
      key_errors_[c] = wire_error(profile_, std::abs(k[c]), largest);
    }
  }

  /// The errors that the wire brings to dP_ij = Σ_c dO_ic v_jc, per visible key of the row.
  void find_value_errors(const RowAddress& at, const double* upstream) {
    product_wire_errors_.clear();
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const double* v = channels_of(input_.v, at.batch, at.kv_head, row_.key[n], v_buffer_);
      double largest = 0, error = 0;
      for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
        largest = std::max(largest, std::abs(v[c]));
      }
      for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
        error += std::abs(upstream[c]) * wire_error(profile_, std::abs(v[c]), largest);
      }
      product_wire_errors_.push_back(row_.factor_of(n) * error);
    }
  }

  std::vector<double> probability_errors(const RowAddress& at) {
    const ScoreRange range(row_, input_, at);
    std::vector<double> errors;
    steepness_.clear();
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const ScoreTerms terms = range.terms(row_, n);
      steepness_.push_back(steepness_of(terms, n));
      errors.push_back(probability_error(
          profile_, {.score = terms,
                     .lse = forward_.lse(at.batch, at.q_head, at.query, 0),
                     .lse_error = forward_tolerance_.lse(at.batch, at.q_head, at.query, 0)}));
    }
    return errors;
  }

  /// 1 - t² of a t = tanh that is off by as much as the capped score is, relative to the cap.
  Steepness steepness_of(const ScoreTerms& terms, std::size_t n) const {
    if (row_.steepness.empty() || terms.softcap == 0) return {};
    const double off = capped_error(profile_, terms) / terms.softcap;
    const double t = std::min(std::tanh(terms.scaled_score / terms.softcap) * kOutward, 1.0);
    const double error = (2 * t + off) * off + 6 * profile_.u_work;
    return {row_.steepness[n], row_.steepness_error[n], error < 2 ? error * kOutward : 2};
  }

  /// The error of dP_ij, the wire's part included.
  double pair_product_error(const RowGradients& gradients, std::size_t n) const {
    const double wire = product_wire_errors_[n];
    const double products = gradients.products[n] * kOutward + wire;
    if (row_.factor.empty()) return product_error(gradients.products[n] + wire) + wire;
    if (row_.factor[n] == 0) return 0;
    const double channels = static_cast<double>(input_.problem.shape.v_dim);
    const double gamma = gamma_bound(channels, profile_.u_accumulate);
    return gamma * products + wire + kDropoutRoundings * profile_.u_work * products * (1 + gamma) +
           (row_.factor[n] * channels + kDropoutRoundings) * profile_.product_underflow * kOutward;
  }

  double product_error(double products) const {
    const double channels = static_cast<double>(input_.problem.shape.v_dim);
    return gamma_bound(channels, profile_.u_accumulate) * products +
           channels * profile_.product_underflow;
  }

  /// δD_i, for D_i = Σ_c dO_ic O_ic from the output the subject stored, or Σ_j P_ij dP_ij.
  double mean_error(const RowAddress& at, const RowGradients& gradients,
                    const std::vector<double>& relative, const double* upstream) const {
    double stored = 0, products = 0;
    for (std::int64_t c = 0; c < input_.problem.shape.v_dim; ++c) {
      const double tolerance = forward_tolerance_.out(at.batch, at.q_head, at.query, c);
      const double out = std::abs(forward_.out(at.batch, at.q_head, at.query, c)) + tolerance;
      stored += std::abs(upstream[c]) * tolerance;
      products += std::abs(upstream[c]) * out;
    }
    double summed = 0, magnitude = 0;
    for (std::size_t n = 0; n < relative.size(); ++n) {
      const double p = gradients.probability[n] + gradients.probability_error[n];
      const double computed = p * (1 + relative[n]) + profile_.exp_underflow;
      const double wire = product_wire_errors_[n];
      summed += (p * relative[n] + profile_.exp_underflow) * gradients.products[n] +
                computed * pair_product_error(gradients, n);
      magnitude += computed * (gradients.products[n] + wire);
    }
    const double keys = static_cast<double>(relative.size());
    return std::max(stored + product_error(products),
                    summed + gamma_bound(keys + 1, profile_.u_accumulate) * magnitude +
                        keys * profile_.product_underflow) *
           kOutward;
  }

  PairErrors pair_errors(const RowGradients& gradients, std::size_t n, double relative,
                         double row_error) const {
    const double p = gradients.probability[n] + gradients.probability_error[n];
    const double difference = std::abs(gradients.difference[n]) + gradients.difference_error[n];
    ScoreGradientTerms terms{.probability = p,
                             .relative_error = relative,
                             .difference = difference,
                             .product_error = pair_product_error(gradients, n)};
    PairErrors pair;
    add_kept(gradients, n, relative, pair);
    pair.score = p * difference;
    pair.own_score_error = score_gradient_error(profile_, terms);
    terms.row_error = row_error;
    pair.score_error = score_gradient_error(profile_, terms);
    pair.row_weight = gradients.probability[n];
    pair.row_share =
        p * (relative + (profile_.u_probability + 4 * profile_.u_work) * (1 + relative)) +
        gradients.probability_error[n] + profile_.exp_underflow;
    if (!row_.steepness.empty()) flatten(steepness_[n], pair);
    return pair;
  }

  void add_kept(const RowGradients& gradients, std::size_t n, double relative,
                PairErrors& pair) const {
    const double factor = row_.factor_of(n);
    if (factor == 0) return;
    pair.kept = gradients.kept[n] + gradients.kept_error[n];
    const double dropout = row_.factor.empty() ? 0 : kDropoutRoundings * profile_.u_work;
    pair.kept_error = pair.kept * relative + factor * profile_.exp_underflow +
                      (profile_.u_probability + dropout) * pair.kept * (1 + relative) +
                      std::max(factor, 1.0) * profile_.p_underflow +
                      (dropout > 0 ? profile_.product_underflow : 0);
  }

  /// dS_ij times the slope of soft-capping, which may be cast after it.
  void flatten(const Steepness& slope, PairErrors& pair) const {
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

  /// Writes the tolerance of one token's gradient.
  void write(const BoundSums& sums, const RowAddress& to, double scale,
             const BoundTarget& target) const {
    for (std::int64_t c = 0; c < target.exact.extents().channels; ++c) {
      const double own = target.error(to.batch, to.q_head, to.query, c);
      const double value = std::abs(target.exact(to.batch, to.q_head, to.query, c)) + own;
      target.tolerance(to.batch, to.q_head, to.query, c) =
          sums.bound(profile_, static_cast<std::size_t>(c), scale, value) + own;
    }
  }

  const AttentionInput& input_;
  const TensorView<const double>& dout_;
  const ExactBackward& exact_;
  const NumericsProfile& profile_;
  const RowReader& reader_;
  const ExactForward& forward_;
  const ForwardTolerance& forward_tolerance_;
  std::vector<BoundSums> dk_, dv_;  // per key of one head
  BackwardTolerance& result_;
  QueryRow row_;
  std::vector<double> q_buffer_, k_buffer_, v_buffer_, dout_buffer_;
  std::vector<Steepness> steepness_;                      // per visible key of one row
  std::vector<double> key_errors_, product_wire_errors_;  // by the wire; of one key, of one row
};

}  // namespace

BackwardTolerance backward_tolerance(const AttentionInput& input,
                                     const TensorView<const double>& dout,
                                     const ExactBackward& exact, const NumericsProfile& profile,
                                     int threads) {
  check_dout(input, dout);
  const RowReader reader(input, {});
  const ExactOptions options{.threads = threads};
  const ExactForward forward = exact_forward(input, options);
  const ForwardTolerance allowed = forward_tolerance(input, forward, profile, options);
  const BoundInputs given{input, dout, exact, profile, reader, forward, allowed};
  const Shape& shape = input.problem.shape;
  BackwardTolerance result{Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                           Tensor<double>(shape.v())};
  parallel_rows(shape.batch * shape.kv_heads, threads,
                [&] { return BackwardBounds(given, result); });
  return result;
}

}  // namespace ringlab
