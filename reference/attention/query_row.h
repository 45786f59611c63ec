// One query row of the oracle: its visible keys, their scores and weights, and what is wrong with
// each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention/exact.h"
#include "reference/attention/visible.h"

namespace ringlab {

/// Which row. `slot` is where its results go: the index into ExactOptions::rows.
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
  std::vector<double> score;         ///< s_j
  std::vector<double> products;      ///< A_j = |scale| Σ_c |q_c k_jc|
  std::vector<double> weight;        ///< e^{s_j - row_max}
  std::vector<double> weight_error;  ///< |weight - e^{exact s_j - row_max}|
  double row_max = 0;                ///< of the computed scores
  double row_sum = 0;                ///< compensated
  double row_sum_error = 0;

  bool empty() const { return key.empty(); }
  std::int64_t keys() const { return static_cast<std::int64_t>(key.size()); }
  /// P_j = weight / row_sum, and a bound of what is wrong with it.
  double probability(std::size_t n) const { return weight[n] / row_sum; }
  double probability_error(std::size_t n) const;
};

/// A checked problem, ready to be asked for rows. Keeps a pointer to the input.
class RowReader {
 public:
  /// Input error when shapes, mask or views do not fit together; usage error for bad `rows`.
  RowReader(const AttentionInput& input, const ExactOptions& options);

  std::int64_t rows_per_head() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Number of rows over all batches and query heads.
  std::int64_t rows() const;
  RowAddress address(std::int64_t row) const;
  /// Extents of a result with these channels.
  Extents extents(std::int64_t channels) const;

  /// Fills `row`, reusing its storage; O(kv_tokens) of it. Masked keys are not read.
  /// Input error when a visible score is not finite.
  void read(const RowAddress& address, QueryRow& row) const;
  const AttentionInput& input() const { return *input_; }

 private:
  void read_scores(const RowAddress& address, QueryRow& row) const;
  void weigh(QueryRow& row) const;

  const AttentionInput* input_;
  Visibility visible_;
  std::vector<std::int64_t> rows_;
  bool exact_products_;
};

/// What score_error() needs to know of one row's keys; shared by the forward and backward bounds.
class ScoreRange {
 public:
  ScoreRange(const QueryRow& row, const AttentionInput& input, const RowAddress& address);
  /// Of visible key number n.
  ScoreTerms terms(const QueryRow& row, std::size_t n) const;
  /// The largest |score| of the row, of keys that travelled as `profile` says.
  double largest_score(const NumericsProfile& profile) const;

 private:
  ScoreTerms common_;
  std::vector<double> key_magnitude_, key_largest_;  // per visible key
};

/// Input error naming the tensor when `x` is not finite: a visible input is not, or fp64
/// overflowed.
void check_finite(double x, const char* what);

}  // namespace ringlab
