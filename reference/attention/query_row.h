// One query row of the oracle: its visible keys, their scores and weights, and the error of each of
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention/exact.h"
#include "reference/attention/modified.h"
#include "reference/attention/visible.h"

namespace ringlab {

/// The place of a row. `slot` is where its results go: the index into ExactOptions::rows.
struct RowAddress {
  std::int64_t batch = 0;
  std::int64_t q_head = 0;
  std::int64_t kv_head = 0;
  std::int64_t query = 0;
  std::int64_t slot = 0;
};

/// Softmax of one row before division: the weight of visible key number n is weight[n] / row_sum.
struct QueryRow {
  std::vector<std::int64_t> key;     ///< global positions, ascending
  std::vector<double> score;         ///< s_j, modified
  std::vector<double> products;      ///< A_j = |scale| Σ_c |q_c k_jc|
  std::vector<double> weight;        ///< e^{s_j - row_max}
  std::vector<double> weight_error;  ///< |weight - e^{exact s_j - row_max}|
  double row_max = 0;                ///< of the computed scores and the sink
  double row_sum = 0;                ///< compensated, the sink included
  double row_sum_error = 0;
  // Entries per key: of scores that are modified, and of pairs that are dropped; else empty.
  std::vector<double> scaled;                      ///< scale · q·k_j, before soft-capping
  std::vector<double> bias;                        ///< what ALiBi subtracted
  std::vector<double> steepness, steepness_error;  ///< d score / d scaled
  std::vector<double> factor;                      ///< f_j of dropout, within two roundings
  // The sink, if there is one.
  std::optional<double> sink;
  double sink_weight = 0, sink_weight_error = 0;  ///< e^{sink - row_max}

  bool empty() const { return key.empty(); }  ///< sees no key; there may still be a sink
  std::int64_t keys() const { return static_cast<std::int64_t>(key.size()); }
  /// Terms of the row sum.
  std::int64_t terms() const { return keys() + (sink ? 1 : 0); }
  double scaled_score(std::size_t n) const { return scaled.empty() ? score[n] : scaled[n]; }
  double bias_of(std::size_t n) const { return bias.empty() ? 0 : bias[n]; }
  /// f_j, 1 without dropout, and a bound of its error.
  double factor_of(std::size_t n) const { return factor.empty() ? 1 : factor[n]; }
  double factor_error(std::size_t n) const { return factor.empty() ? 0 : 0x1.8p-52 * factor[n]; }
  /// P_j = weight / row_sum, and a bound of its error.
  double probability(std::size_t n) const { return weight[n] / row_sum; }
  double probability_error(std::size_t n) const {
    return quotient_error(weight[n], weight_error[n]);
  }
  double sink_probability() const { return sink_weight / row_sum; }
  double sink_probability_error() const { return quotient_error(sink_weight, sink_weight_error); }
  /// The error of a weight over the row sum.
  double quotient_error(double one_weight, double one_error) const;
};

/// The input's address. Input error when shapes, mask or views do not fit together.
const AttentionInput* checked_input(const AttentionInput& input);
/// `rows`, or all of them when empty. Usage error unless they are ascending rows of the problem.
std::vector<std::int64_t> chosen_rows(const std::vector<std::int64_t>& rows, std::int64_t tokens);

/// A checked problem, ready to be asked for rows. Keeps a pointer to the input.
class RowReader {
 public:
  /// Input error when shapes, mask or views do not fit together; usage error for bad `rows`.
  RowReader(const AttentionInput& input, const ExactOptions& options);

  std::int64_t rows_per_head() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Number of rows over all batches and query heads.
  std::int64_t rows() const;
  RowAddress address(std::int64_t row) const;
  /// The number of rows that read one K/V head; those of the n-th, over all batches, begin at n
  /// times as many.
  std::int64_t rows_per_kv_head() const;
  /// Extents of a result with these channels.
  Extents extents(std::int64_t channels) const;

  /// Fills `row`, reusing its storage; O(kv_tokens) of it. Masked keys are not read.
  /// Input error when a visible score is not finite.
  void read(const RowAddress& address, QueryRow& row) const;
  const AttentionInput& input() const { return *input_; }

 private:
  void read_scores(const RowAddress& address, QueryRow& row) const;
  /// The score of the last key, from the scaled one, which is wrong by at most `error`.
  void add_score(const RowAddress& address, double scaled, double error, QueryRow& row) const;
  void weigh(QueryRow& row) const;

  const AttentionInput* input_;
  Visibility visible_;
  ScoreModifier modify_;
  Dropout dropout_;
  std::vector<std::int64_t> rows_;
  bool exact_products_;
};

/// The sizes that score_error() needs of one row's keys; shared by the forward and backward bounds.
class ScoreRange {
 public:
  ScoreRange(const QueryRow& row, const AttentionInput& input, const RowAddress& address);
  /// The terms of visible key number n.
  ScoreTerms terms(const QueryRow& row, std::size_t n) const;
  /// The terms of the sink: a score that a kernel rounds once, and that depends on no key.
  ScoreTerms sink_terms() const;
  /// The largest |score| of the row, of keys that travelled as `profile` says.
  double largest_score(const NumericsProfile& profile) const;

 private:
  ScoreTerms common_;
  std::vector<double> key_magnitude_, key_largest_;  // per visible key
  double sink_distance_ = 0, sink_size_ = 0;
};

/// Input error naming the tensor when `x` is not finite: a visible input is not, or fp64
/// overflowed.
void check_finite(double x, const char* what);

}  // namespace ringlab
