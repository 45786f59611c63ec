#include "property_tests/laws/gradients/directional.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringlab::verify {
namespace {

/// A dot product and the sum of its terms' sizes.
struct DotSum {
  long double value = 0, size = 0;
};

DotSum dot(const Tensor<double>& x, std::int64_t x_head, std::int64_t i, const Tensor<double>& y,
           std::int64_t y_head, std::int64_t j, std::int64_t b) {
  DotSum sum;
  for (std::int64_t c = 0; c < x.extents().channels; ++c) {
    const long double product = static_cast<long double>(x(b, x_head, i, c)) * y(b, y_head, j, c);
    sum.value += product;
    sum.size += std::abs(product);
  }
  return sum;
}

/// A visible pair of a row: its score and weight, and how both move along the direction.
/// tangent: of the score; upstream: dO · v; moved: dO · Δv.
struct MovedPair {
  long double score = 0, weight = 0;
  DotSum tangent;   // of the score
  DotSum upstream;  // dO · v
  DotSum moved;     // dO · Δv
};

/// A query row in long double: d<dO, O> = Σ_j p_j ((t_j - t̄) dO·v_j + dO·Δv_j), where t_j is the
/// tangent of score j and t̄ its weighted mean.
class MovedRow {
 public:
  MovedRow(const GradientTrial& trial, const AttentionTensors& direction, std::int64_t b,
           std::int64_t h)
      : trial_(trial), direction_(direction), b_(b), h_(h), kv_(h / trial.base.group()) {}

  void add_key(std::int64_t i, std::int64_t j) {
    const AttentionTensors& x = trial_.base.data;
    const long double scale = trial_.base.problem.scale;
    const DotSum score = dot(x.q, h_, i, x.k, kv_, j, b_);
    const DotSum dq = dot(direction_.q, h_, i, x.k, kv_, j, b_);
    const DotSum dk = dot(x.q, h_, i, direction_.k, kv_, j, b_);
    largest_ = std::max(largest_, std::abs(scale) * score.size);
    pairs_.push_back(
        {.score = scale * score.value,
         .tangent = {scale * (dq.value + dk.value), std::abs(scale) * (dq.size + dk.size)},
         .upstream = dot(trial_.dout, h_, i, x.v, kv_, j, b_),
         .moved = dot(trial_.dout, h_, i, direction_.v, kv_, j, b_)});
  }

  Derivative derivative() {
    weigh();
    DotSum mean;
    for (const MovedPair& pair : pairs_) {
      mean.value += pair.weight * pair.tangent.value;
      mean.size += pair.weight * pair.tangent.size;
    }
    DotSum sum;
    for (const MovedPair& pair : pairs_) {
      sum.value += pair.weight *
                   ((pair.tangent.value - mean.value) * pair.upstream.value + pair.moved.value);
      sum.size +=
          pair.weight * ((pair.tangent.size + mean.size) * pair.upstream.size + pair.moved.size);
    }
    return {sum.value, sum.size * relative_error()};
  }

 private:
  void weigh() {
    long double top = -HUGE_VALL, sum = 0;
    for (const MovedPair& pair : pairs_) top = std::max(top, pair.score);
    for (MovedPair& pair : pairs_) sum += pair.weight = std::exp(pair.score - top);
    for (MovedPair& pair : pairs_) pair.weight /= sum;
  }

  /// Every sum is within (terms · 2^-63) of its size; an error of the scores, itself relative to
  /// the largest one, is a relative error of the weights. Twice the first order.
  long double relative_error() const {
    const Shape& s = trial_.shape();
    const auto terms = static_cast<long double>(2 * pairs_.size()) +
                       static_cast<long double>(2 * s.head_dim + 2 * s.v_dim + 16);
    const auto dim = static_cast<long double>(s.head_dim);
    return 2 * (3 * terms + 4 * (dim + 4) * largest_) * 0x1p-63L;
  }

  const GradientTrial& trial_;
  const AttentionTensors& direction_;
  std::int64_t b_, h_, kv_;
  long double largest_ = 0;
  std::vector<MovedPair> pairs_;
};

}  // namespace

Derivative derivative_along(const GradientTrial& trial, const AttentionTensors& direction,
                            std::int64_t batch, std::int64_t head) {
  const Mask& mask = trial.base.problem.mask;
  Derivative sum;
  for (std::int64_t i = 0; i < trial.shape().q_tokens; ++i) {
    MovedRow row(trial, direction, batch, head);
    for (std::int64_t j = 0; j < trial.shape().kv_tokens; ++j) {
      if (mask.allows(i, j)) row.add_key(i, j);
    }
    const Derivative part = row.derivative();
    sum.value += part.value;
    sum.error += part.error;
  }
  return sum;
}

}  // namespace ringlab::verify
