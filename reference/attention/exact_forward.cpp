#include <cmath>
#include <limits>

#include "reference/attention/compensated.h"
#include "reference/attention/exact.h"
#include "reference/attention/query_row.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Computes rows one after the other with buffers of its own.
class ExactForwardWorker {
 public:
  ExactForwardWorker(const RowReader& reader, ExactForward& result)
      : reader_(&reader),
        result_(&result),
        sums_(reader.input().v.extents.channels, reader.input().v.extents.tokens) {}

  void operator()(std::int64_t row_number) {
    const RowAddress at = reader_->address(row_number);
    reader_->read(at, row_);
    if (row_.terms() == 0) {  // neither a key nor a sink
      result_->lse(at.batch, at.q_head, at.slot, 0) = -kInfinity;
      return;  // out and all errors are zero already
    }
    write_lse(at);
    if (!row_.empty()) write_out(at);  // with a sink alone out stays 0
  }

 private:
  void write_lse(const RowAddress& at) {
    const double log_sum = std::log(row_.row_sum);
    const double lse = row_.row_max + log_sum;
    // log((1 - lost) ℓ) at worst; without a bound where the sum may be zero.
    const double lost = row_.row_sum_error / row_.row_sum;
    const double error = lost < 1 ? -std::log1p(-lost) : kInfinity;
    result_->lse(at.batch, at.q_head, at.slot, 0) = lse;
    result_->lse_error(at.batch, at.q_head, at.slot, 0) =
        (error + kUnitRoundoff * (2 * std::abs(log_sum) + std::abs(lse))) * (1 + 0x1p-40) +
        kUnderflow;
  }

  /// The error of factor · weight, as rounded.
  double kept_error(std::size_t n) const {
    if (row_.factor.empty()) return row_.weight_error[n];
    const double rounding = kUnitRoundoff * row_.factor[n] * row_.weight[n];
    return ((row_.factor[n] + row_.factor_error(n)) * row_.weight_error[n] +
            row_.factor_error(n) * row_.weight[n] + rounding) *
               (1 + 0x1p-40) +
           kUnderflow;
  }

  void write_out(const RowAddress& at) {
    sums_.clear();
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      const double* v =
          channels_of(reader_->input().v, at.batch, at.kv_head, row_.key[n], v_buffer_);
      const double factor = row_.factor_of(n);
      sums_.add(factor * row_.weight[n], kept_error(n), v);
    }
    // Lower bound of the true row sum.
    const double least_sum = row_.row_sum - row_.row_sum_error;
    for (std::int64_t c = 0; c < reader_->input().v.extents.channels; ++c) {
      const double out = sums_.value(c) / row_.row_sum;
      check_finite(out, "output");
      // N̂/ℓ̂ - N/ℓ = [(N̂ - N) - (N̂/ℓ̂)(ℓ̂ - ℓ)] / ℓ, and ℓ >= ℓ̂ - error.
      const double error = (sums_.error(c) + std::abs(out) * row_.row_sum_error) / least_sum;
      result_->out(at.batch, at.q_head, at.slot, c) = out;
      result_->out_error(at.batch, at.q_head, at.slot, c) =
          least_sum > 0 ? (error + kUnitRoundoff * std::abs(out)) * (1 + 0x1p-40) + kUnderflow
                        : kInfinity;
    }
  }

  const RowReader* reader_;
  ExactForward* result_;
  BoundedSums sums_;
  QueryRow row_;
  std::vector<double> v_buffer_;
};

}  // namespace

ExactForward exact_forward(const AttentionInput& input, const ExactOptions& options) {
  const RowReader reader(input, options);
  ExactForward result;
  result.out = result.out_error = Tensor<double>(reader.extents(input.problem.shape.v_dim));
  result.lse = result.lse_error = Tensor<double>(reader.extents(1));
  const RowCounter row_done(options.progress, reader.rows());
  parallel_rows(reader.rows(), options.threads, [&] {
    return [&, worker = ExactForwardWorker(reader, result)](std::int64_t row) mutable {
      worker(row);
      row_done();
    };
  });
  return result;
}

}  // namespace ringlab
