// Facts about a problem that fast_forward collects first: sizes of rows and blocks of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention/exact.h"
#include "reference/attention/fast_rows.h"

namespace ringlab::fast {

/// Sizes of the keys and values of one batch and K/V head that any chosen row sees, block by block.
struct KeySizes {
  std::vector<double> key_norm;       ///< upper bound of the Euclidean norms in the block
  std::vector<double> value_largest;  ///< (blocks, v_dim): largest magnitudes
};

/// The plan of one call. Keeps a pointer to the input.
class FastPlan {
 public:
  /// Input error when shapes, mask or views do not fit together, or when an input that a chosen row
  /// sees is not finite; usage error for bad rows. O(tokens · channels) time.
  FastPlan(const AttentionInput& input, const ExactOptions& options);

  const AttentionInput& input() const { return *input_; }
  const RowVisibility& visible() const { return visible_; }
  std::int64_t query(std::int64_t slot) const { return rows_[static_cast<std::size_t>(slot)]; }
  std::int64_t rows_per_head() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t kv_head(std::int64_t q_head) const;

  /// True when no number on the way can leave the range of fp64, whatever the order of sums.
  bool in_range() const;
  const KeySizes& keys(std::int64_t batch, std::int64_t kv_head) const;
  /// Upper bound of the Euclidean norm of a query; 0 for a row that sees nothing.
  double query_norm(std::int64_t batch, std::int64_t q_head, std::int64_t slot) const;
  /// True when the block, filled up to whole grains, has keys that no row may read.
  bool has_unseen(std::int64_t block) const {
    return has_unseen_[static_cast<std::size_t>(block)] != 0;
  }

 private:
  void note_unseen();
  void measure_head(std::int64_t head);
  void measure_queries(std::int64_t batch, std::int64_t q_head);

  const AttentionInput* input_;
  std::vector<std::int64_t> rows_;
  RowVisibility visible_;
  std::vector<KeySizes> keys_;       // per batch and K/V head
  std::vector<double> query_norms_;  // (batch, q_heads, rows)
  std::vector<char> has_unseen_;
};

}  // namespace ringlab::fast
