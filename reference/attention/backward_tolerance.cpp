#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "reference/attention/compensated.h"
#include "reference/attention/exact.h"
#include "reference/attention/row_errors.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab {
namespace {

/// The sums of gradient_bound for one token, one entry per channel.
class BoundSums {
 public:
  /// Partial sums are stored `stores` times before they are complete.
  BoundSums(std::int64_t channels, std::int64_t stores, std::int64_t heads = 1)
      : stores_(stores),
        heads_(heads),
        propagated_(static_cast<std::size_t>(channels)),
        magnitude_(propagated_),
        values_(propagated_) {}

  /// Adds a product a · values[c], with |a| <= size and |computed a - a| <= error.
  void add(double size, double error, const double* values) {
    ++terms_;
    sizes_ += size + error;
    for (std::size_t c = 0; c < propagated_.size(); ++c) {
      propagated_[c] += error * std::abs(values[c]);
      magnitude_[c] += size * std::abs(values[c]);
      values_[c] += std::abs(values[c]);
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
    sizes_ = 0;
    std::ranges::fill(values_, 0.0);
    std::ranges::fill(propagated_, 0.0);
    std::ranges::fill(magnitude_, 0.0);
  }

  /// `scale` is that of dq and dk; dv has none.
  double bound(const NumericsProfile& profile, std::size_t c, std::optional<double> scale,
               double value) const {
    return gradient_bound(profile, {.terms = terms_,
                                    .propagated = propagated_[c] * kOutward,
                                    .magnitude = magnitude_[c] * kOutward,
                                    .scale = std::abs(scale.value_or(1)),
                                    .value = value,
                                    .stores = stores_,
                                    .heads = heads_,
                                    .is_scaled = scale.has_value(),
                                    .first_factors = sizes_ * kOutward,
                                    .second_factors = values_[c] * kOutward});
  }

 private:
  std::int64_t terms_ = 0, stores_ = 0, heads_ = 1;
  double sizes_ = 0;                                     ///< of the first factors
  std::vector<double> propagated_, magnitude_, values_;  ///< values: sums of the second factors
};

/// The inputs of the bounds of all heads.
struct BoundInputs {
  const AttentionInput& input;
  const TensorView<const double>& dout;
  const ExactBackward& exact;
  const NumericsProfile& profile;
  const RowReader& reader;
  const AllowedForward& allowed;
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
        errors_(given.input, given.profile, given.allowed),
        result_(result) {
    const Shape& shape = input_.problem.shape;
    const std::size_t keys = static_cast<std::size_t>(shape.kv_tokens);
    const std::int64_t stores = profile_.key_gradient_stores, heads = profile_.key_gradient_heads;
    dk_.assign(keys, BoundSums(shape.head_dim, stores, heads));
    dv_.assign(keys, BoundSums(shape.v_dim, stores, heads));
  }

  /// All query heads that read this K/V head.
  void operator()(std::int64_t head_of_batch) {
    for (BoundSums& sums : dk_) sums.clear();
    for (BoundSums& sums : dv_) sums.clear();
    const std::int64_t kv_heads = input_.problem.shape.kv_heads;
    const std::int64_t batch = head_of_batch / kv_heads, kv_head = head_of_batch % kv_heads;
    const std::int64_t rows = reader_.rows_per_kv_head();
    for (std::int64_t row = head_of_batch * rows; row < (head_of_batch + 1) * rows; ++row) {
      add_row(reader_.address(row));
    }
    for (std::int64_t key = 0; key < input_.problem.shape.kv_tokens; ++key) {
      const RowAddress at{.batch = batch, .q_head = kv_head, .kv_head = kv_head, .query = key};
      const std::size_t n = static_cast<std::size_t>(key);
      write(dk_[n], at, input_.problem.scale, {exact_.dk, exact_.dk_error, result_.dk});
      write(dv_[n], at, {}, {exact_.dv, exact_.dv_error, result_.dv});
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
    errors_.take(at, row_, gradients, upstream);
    BoundSums dq(input_.problem.shape.head_dim, profile_.query_gradient_stores);
    std::vector<double> mean_key(static_cast<std::size_t>(input_.problem.shape.head_dim));
    std::vector<double> mean_share(mean_key.size());
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const PairErrors pair = errors_.pair(n);
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
      dq.add_error(c, errors_.mean() * (std::abs(mean_key[c]) + mean_share[c]));
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

  /// Writes the tolerance of one token's gradient.
  void write(const BoundSums& sums, const RowAddress& to, std::optional<double> scale,
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
  RowErrors errors_;
  std::vector<BoundSums> dk_, dv_;  // per key of one head
  BackwardTolerance& result_;
  QueryRow row_;
  std::vector<double> q_buffer_, k_buffer_, dout_buffer_;
  std::vector<double> key_errors_;  // of one key, by the wire
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
  const ForwardTolerance tolerance = forward_tolerance(input, forward, profile, options);
  const AllowedForward allowed{forward, tolerance};
  const BoundInputs given{input, dout, exact, profile, reader, allowed};
  const Shape& shape = input.problem.shape;
  BackwardTolerance result{Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                           Tensor<double>(shape.v())};
  parallel_rows(shape.batch * shape.kv_heads, threads,
                [&] { return BackwardBounds(given, result); });
  return result;
}

GradientSizes gradient_sizes(const AttentionInput& input, const TensorView<const double>& dout) {
  const auto mean_square = [](const TensorView<const double>& x) {
    double sum = 0;
    for_each_index(x.extents,
                   [&](auto b, auto h, auto t, auto c) { sum += x(b, h, t, c) * x(b, h, t, c); });
    const Extents& e = x.extents;
    return sum / static_cast<double>(
                     std::max<std::int64_t>(1, e.batch * e.heads * e.tokens * e.channels));
  };
  const Shape& shape = input.problem.shape;
  const double slopes = static_cast<double>(shape.v_dim) * mean_square(dout) *
                        mean_square(input.v) /
                        static_cast<double>(std::max<std::int64_t>(1, shape.kv_tokens));
  const double scale = std::abs(input.problem.scale);
  return {.dq = scale * std::sqrt(slopes * mean_square(input.k)),
          .dk = scale * std::sqrt(slopes * mean_square(input.q))};
}

}  // namespace ringlab
