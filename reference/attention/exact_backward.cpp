#include <cmath>
#include <utility>

#include "reference/attention/compensated.h"
#include "reference/attention/exact.h"
#include "reference/attention/row_gradients.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab {
namespace {

/// The gradient sums of one K/V head: one BoundedSums per key, for dk and for dv.
struct HeadSums {
  std::vector<BoundedSums> dk, dv;
  explicit HeadSums(const Shape& shape) {
    const std::int64_t terms = shape.q_tokens * (shape.q_heads / shape.kv_heads);
    dk.assign(static_cast<std::size_t>(shape.kv_tokens), BoundedSums(shape.head_dim, terms));
    dv.assign(static_cast<std::size_t>(shape.kv_tokens), BoundedSums(shape.v_dim, terms));
  }
  void clear() {
    for (BoundedSums& sums : dk) sums.clear();
    for (BoundedSums& sums : dv) sums.clear();
  }
};

struct GradientTarget {
  Tensor<double>& gradient;
  Tensor<double>& error;
};

/// Writes scale · sums as one token's gradient; scale = 1 adds no rounding.
void write_gradient(const BoundedSums& sums, double scale, const RowAddress& to,
                    const GradientTarget& target) {
  for (std::int64_t c = 0; c < target.gradient.extents().channels; ++c) {
    const double value = scale * sums.value(c);
    check_finite(value, "gradient");
    const double error = sums.error(c);
    const bool exact = scale == 1 || error == 0;  // nothing was added
    // Products with the scale may underflow: the sum's and its error's.
    const double rounding = exact ? 0 : kUnitRoundoff * std::abs(value) + 2 * kUnderflow;
    target.gradient(to.batch, to.q_head, to.query, c) = value;
    target.error(to.batch, to.q_head, to.query, c) =
        promised((std::abs(scale) * error + rounding) * (1 + 0x1p-40));
  }
}

/// The results that all K/V heads of all batches write to, each to its own part.
struct HeadGradients {
  ExactBackward backward;
  std::vector<BoundedSums> sinks;  ///< (batch, q_heads) where there are sinks

  explicit HeadGradients(const Problem& problem) {
    const Shape& shape = problem.shape;
    if (!problem.modifiers.sinks.empty()) {
      sinks.assign(static_cast<std::size_t>(shape.batch * shape.q_heads),
                   BoundedSums(1, shape.q_tokens));
    }
    backward.dq = backward.dq_error = Tensor<double>(shape.q());
    backward.dk = backward.dk_error = Tensor<double>(shape.k());
    backward.dv = backward.dv_error = Tensor<double>(shape.v());
  }

  void add_up_sinks(const Shape& shape) {
    if (sinks.empty()) return;
    constexpr double kOne = 1;
    for (std::int64_t head = 0; head < shape.q_heads; ++head) {
      BoundedSums sum(1, shape.batch);
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        const BoundedSums& one = sinks[static_cast<std::size_t>(b * shape.q_heads + head)];
        sum.add(one.value(0), one.error(0), &kOne);
      }
      backward.dsinks.push_back(sum.value(0));
      backward.dsinks_error.push_back(promised(sum.error(0)));
    }
  }
};

/// Takes K/V heads of batches, one after the other.
class ExactBackwardWorker {
 public:
  ExactBackwardWorker(const RowReader& reader, const TensorView<const double>& dout,
                      const RowCounter& row_done, HeadGradients& result)
      : input_(reader.input()),
        dout_(dout),
        reader_(reader),
        row_done_(row_done),
        head_sums_(input_.problem.shape),
        result_(result) {}

  /// The rows of all query heads that read this K/V head come one after the other.
  /// One worker has all of a K/V head's sums, so no two threads add to one number, and the order of
  /// additions is that of the rows.
  void operator()(std::int64_t head_of_batch) {
    const Shape& shape = input_.problem.shape;
    const std::int64_t batch = head_of_batch / shape.kv_heads;
    const std::int64_t kv_head = head_of_batch % shape.kv_heads;
    head_sums_.clear();
    const std::int64_t rows = reader_.rows_per_kv_head();
    for (std::int64_t row = head_of_batch * rows; row < (head_of_batch + 1) * rows; ++row) {
      add_row(reader_.address(row));
      row_done_();
    }
    ExactBackward& to = result_.backward;
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      const std::size_t key = static_cast<std::size_t>(j);
      const RowAddress at{.batch = batch, .q_head = kv_head, .kv_head = kv_head, .query = j};
      write_gradient(head_sums_.dk[key], input_.problem.scale, at, {to.dk, to.dk_error});
      write_gradient(head_sums_.dv[key], 1, at, {to.dv, to.dv_error});
    }
  }

 private:
  void add_row(const RowAddress& at) {
    reader_.read(at, row_);
    if (row_.empty()) return;  // no key, no gradient; dq stays 0
    const RowGradients gradients = row_gradients(input_, dout_, at, row_);
    const double* q = channels_of(input_.q, at.batch, at.q_head, at.query, q_buffer_);
    const double* upstream = channels_of(dout_, at.batch, at.q_head, at.query, dout_buffer_);
    // dq_i = scale Σ_j dS_ij k_j, dk_j = scale Σ_i dS_ij q_i, dv_j = Σ_i P_ij dO_i.
    BoundedSums dq(input_.problem.shape.head_dim, row_.keys());
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const std::size_t key = static_cast<std::size_t>(row_.key[n]);
      const double* k = channels_of(input_.k, at.batch, at.kv_head, row_.key[n], k_buffer_);
      dq.add(gradients.score[n], gradients.score_error[n], k);
      head_sums_.dk[key].add(gradients.score[n], gradients.score_error[n], q);
      head_sums_.dv[key].add(gradients.kept[n], gradients.kept_error[n], upstream);
    }
    ExactBackward& to = result_.backward;
    write_gradient(dq, input_.problem.scale, at, {to.dq, to.dq_error});
    if (row_.sink) add_sink(at, gradients);
  }

  /// P_sink (0 - D_i): a sink is a key whose dP is zero.
  void add_sink(const RowAddress& at, const RowGradients& gradients) {
    const double p = row_.sink_probability(), p_error = row_.sink_probability_error();
    const double product = -p * gradients.mean;
    const double error =
        (p_error * std::abs(gradients.mean) + (p + p_error) * gradients.mean_error +
         kUnitRoundoff * std::abs(product)) *
            (1 + 0x1p-40) +
        kUnderflow;
    constexpr double kOne = 1;
    const std::int64_t sink = at.batch * input_.problem.shape.q_heads + at.q_head;
    result_.sinks[static_cast<std::size_t>(sink)].add(product, error, &kOne);
  }

  const AttentionInput& input_;
  const TensorView<const double>& dout_;
  const RowReader& reader_;
  const RowCounter& row_done_;
  HeadSums head_sums_;
  HeadGradients& result_;
  QueryRow row_;
  std::vector<double> q_buffer_, k_buffer_, dout_buffer_;
};

}  // namespace

ExactBackward exact_backward(const AttentionInput& input, const TensorView<const double>& dout,
                             int threads, const RowProgress& progress) {
  check_dout(input, dout);
  const RowReader reader(input, {});
  const Shape& shape = input.problem.shape;
  HeadGradients result(input.problem);
  const RowCounter row_done(progress, reader.rows());
  parallel_rows(shape.batch * shape.kv_heads, threads,
                [&] { return ExactBackwardWorker(reader, dout, row_done, result); });
  result.add_up_sinks(shape);
  return std::move(result.backward);
}

}  // namespace ringlab
