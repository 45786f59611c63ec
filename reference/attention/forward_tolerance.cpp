#include <algorithm>
#include <cmath>
#include <string>

#include "reference/attention/compensated.h"
#include "reference/attention/exact.h"
#include "reference/attention/query_row.h"
#include "reference/core/error.h"
#include "reference/core/rows/parallel_rows.h"

namespace ringlab {
namespace {

// Covers the plain double sums below and the roundings of their terms.
double inflation(std::int64_t keys) { return 1 + 0x1p-40 + static_cast<double>(keys) * 0x1p-51; }

/// w_j, an upper bound; what a subject may change it by; f_j, within a relative factor_error.
struct KeyWeight {
  double weight = 0;
  double change = 0;
  double factor = 1;
  double factor_error = 0;
};

/// The sums of output_bound over the keys of one row, one set per output channel.
struct ChannelSums {
  std::vector<double> spread, magnitude, absolute, weighted_wire, wire;
  explicit ChannelSums(std::int64_t channels)
      : spread(static_cast<std::size_t>(channels)),
        magnitude(spread),
        absolute(spread),
        weighted_wire(spread),
        wire(spread) {}

  void clear() {
    for (auto* sums : {&spread, &magnitude, &absolute, &weighted_wire, &wire}) {
      std::fill(sums->begin(), sums->end(), 0.0);
    }
  }
  /// Adds the errors that the wire brings to the values of one key, whose changed weight is at most
  /// `weight`.
  void add_wire(const NumericsProfile& profile, double weight, double factor, const double* v) {
    if (travels_exactly(profile)) return;
    double largest = 0;
    for (std::size_t c = 0; c < wire.size(); ++c) largest = std::max(largest, std::abs(v[c]));
    for (std::size_t c = 0; c < wire.size(); ++c) {
      const double error = factor * wire_error(profile, std::abs(v[c]), largest);
      weighted_wire[c] += weight * error;
      wire[c] += error;
    }
  }
  void add(const KeyWeight& key, const double* v, const double* out) {
    for (std::size_t c = 0; c < spread.size(); ++c) {
      const double size = key.factor * std::abs(v[c]);
      spread[c] += key.change * (std::abs(key.factor * v[c] - out[c]) + key.factor_error * size);
      magnitude[c] += key.weight * size;
      absolute[c] += size;
    }
  }
  /// A sink: a key whose value is zero.
  void add_sink(double weight_change, const double* out) {
    for (std::size_t c = 0; c < spread.size(); ++c) spread[c] += weight_change * std::abs(out[c]);
  }
};

class ToleranceWorker {
 public:
  ToleranceWorker(const RowReader& reader, const ExactForward& exact,
                  const NumericsProfile& profile, ForwardTolerance& tolerance)
      : reader_(&reader),
        exact_(&exact),
        profile_(profile),
        tolerance_(&tolerance),
        sums_(exact.out.extents().channels) {
    // Wherever a kernel lets the sink in, its state is merged once.
    if (!reader.input().problem.modifiers.sinks.empty()) ++profile_.max_rescales;
  }

  void operator()(std::int64_t row_number) {
    const RowAddress at = reader_->address(row_number);
    reader_->read(at, row_);
    if (row_.terms() == 0) return;
    sum_over_keys(at);
    write_lse_bound(at);
    if (!row_.empty()) write_out_bounds(at);  // else zero exactly
  }

 private:
  void sum_over_keys(const RowAddress& at) {
    const AttentionInput& input = reader_->input();
    const double* out = &(*exact_).out(at.batch, at.q_head, at.slot, 0);
    const double least_sum = row_.row_sum - row_.row_sum_error;
    const ScoreRange range(row_, input, at);
    largest_score_ = range.largest_score(profile_);
    sums_.clear();
    rho_ = max_error_ = 0;
    largest_factor_ = 1;
    for (std::size_t n = 0; n < row_.key.size(); ++n) {
      KeyWeight key{.weight = (row_.weight[n] + row_.weight_error[n]) / least_sum};
      key.change = change_of(key.weight, range.terms(row_, n));
      key.factor = row_.factor_of(n);
      largest_factor_ = std::max(largest_factor_, key.factor);
      key.factor_error = row_.factor.empty() ? 0 : 0x1p-50;
      const double* v = channels_of(input.v, at.batch, at.kv_head, row_.key[n], v_buffer_);
      sums_.add(key, v, out);
      sums_.add_wire(profile_, key.weight + key.change, key.factor, v);
    }
    if (!row_.sink) return;
    const double weight = (row_.sink_weight + row_.sink_weight_error) / least_sum;
    sums_.add_sink(change_of(weight, range.sink_terms()), out);
  }

  /// w_j ρ_j, which is added to W.
  double change_of(double weight, const ScoreTerms& terms) {
    const double error = score_error(profile_, terms) * (1 + 0x1p-40);
    // 2 error: where the change is not small, the oracle's own error is no larger than it.
    const double change =
        error <= 1 ? weight * std::expm1(error) : weight_error(-terms.distance_from_max, 2 * error);
    rho_ += change;
    max_error_ = std::max(max_error_, error - terms.distance_from_max);
    return change;
  }

  double merges() const { return merge_error(profile_, largest_score_, row_.terms()); }

  void write_lse_bound(const RowAddress& at) {
    const double more = inflation(row_.terms());
    tolerance_->lse(at.batch, at.q_head, at.slot, 0) =
        lse_bound(profile_, {.keys = row_.terms(),
                             .weighted_rho = rho_ * more,
                             .row_max = row_.row_max,
                             .row_sum = row_.row_sum,
                             .lse = exact_->lse(at.batch, at.q_head, at.slot, 0),
                             .max_error = max_error_,
                             .merge_error = merges()}) *
            more +
        exact_->lse_error(at.batch, at.q_head, at.slot, 0);
  }

  void write_out_bounds(const RowAddress& at) {
    const double more = inflation(row_.terms());
    for (std::size_t c = 0; c < sums_.spread.size(); ++c) {
      const std::int64_t channel = static_cast<std::int64_t>(c);
      const double own = exact_->out_error(at.batch, at.q_head, at.slot, channel);
      const double out = std::abs(exact_->out(at.batch, at.q_head, at.slot, channel)) + own;
      tolerance_->out(at.batch, at.q_head, at.slot, channel) =
          output_bound(profile_, {.keys = row_.terms(),
                                  .weighted_spread = (sums_.spread[c] + rho_ * own) * more,
                                  .weighted_rho = rho_ * more,
                                  .weighted_magnitude = sums_.magnitude[c] * more,
                                  .magnitude_sum = sums_.absolute[c] * more,
                                  .row_sum = row_.row_sum - row_.row_sum_error,
                                  .out = out,
                                  .max_error = max_error_,
                                  .merge_error = merges(),
                                  .weighted_wire = sums_.weighted_wire[c] * more,
                                  .wire_sum = sums_.wire[c] * more,
                                  .factor_roundings = row_.factor.empty() ? 0 : kDropoutRoundings,
                                  .largest_factor = largest_factor_}) +
          own;
    }
  }

  const RowReader* reader_;
  const ExactForward* exact_;
  NumericsProfile profile_;
  ForwardTolerance* tolerance_;
  ChannelSums sums_;
  QueryRow row_;
  double rho_ = 0;  ///< W
  double largest_score_ = 0;
  double max_error_ = 0;  ///< how far the subject's row maximum may be off
  double largest_factor_ = 1;
  std::vector<double> v_buffer_;
};

}  // namespace

ForwardTolerance forward_tolerance(const AttentionInput& input, const ExactForward& exact,
                                   const NumericsProfile& profile, const ExactOptions& options) {
  const RowReader reader(input, options);
  const Extents out = reader.extents(input.problem.shape.v_dim);
  if (exact.out.extents() != out) {
    throw_input_error(
        {.where = "tolerance",
         .expected = "the exact result of the same rows (" + std::to_string(out.tokens) + ")",
         .actual = std::to_string(exact.out.extents().tokens) + " rows",
         .hint = "Pass the same ExactOptions::rows to both"});
  }
  ForwardTolerance tolerance{Tensor<double>(out), Tensor<double>(reader.extents(1))};
  parallel_rows(reader.rows(), options.threads,
                [&] { return ToleranceWorker(reader, exact, profile, tolerance); });
  return tolerance;
}

Report compare_forward(const AttentionOutput& got, const ExactForward& exact,
                       const ForwardTolerance& tolerance) {
  return {{compare("o", got.out.view(), exact.out.view(), tolerance.out.view()),
           compare("lse", got.lse.view(), exact.lse.view(), tolerance.lse.view())}};
}

}  // namespace ringlab
