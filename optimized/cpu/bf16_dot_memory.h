// What a tile of queries and a block of keys are in memory for the bf16 dot product.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16_dot_tile.h"
#include "optimized/cpu/visible_rows.h"
#include "reference/core/mask.h"
#include "reference/core/small_float.h"
#include "reference/core/state.h"

namespace ringlab::cpu::bf16_dot {

struct Channels {
  std::int64_t head_dim, v_dim;
  std::int64_t pairs() const { return (head_dim + 1) / 2; }
  std::int64_t panels() const { return (v_dim + kPanel - 1) / kPanel; }
};

inline const std::uint16_t* bits_of(const BFloat16* values) {
  static_assert(sizeof(BFloat16) == sizeof(std::uint16_t));
  return &values->bits;
}

/// Some consecutive queries of a head, with their states.
struct QueryRows {
  const BFloat16* q;
  const SoftmaxState<float>* states;
  const float* accs;
  const std::int64_t* positions;
  std::int64_t count;
};

/// A tile of up to kWidth of them, lanes along queries; lanes beyond the rows repeat the last.
class QueryTile {
 public:
  explicit QueryTile(const Channels& channels);

  void load(const QueryRows& rows, const Mask& mask);
  void store(SoftmaxState<float>* states, float* accs) const;
  void look_at(const PositionRun& run);

  const TileView& view() const { return view_; }
  const QueryRows& rows() const { return rows_; }
  LaneBounds bounds() const { return {first_.get(), last_.get()}; }
  const std::uint32_t* queries() const { return queries_.get(); }
  float* row_max() { return state_.get(); }
  float* row_sum() { return state_.get() + kWidth; }
  float* acc() { return acc_.get(); }  ///< (panels · kPanel, lanes)

  /// Scores lack the products of subnormal numbers: adds those of the queries, and of the keys.
  void add_subnormal_queries(const BFloat16* keys, std::int64_t count, float* scores) const;
  void add_subnormal_keys(const BFloat16* keys, std::int64_t count, float* scores) const;
  bool has_subnormals() const { return has_subnormals_; }

 private:
  const BFloat16* row_of(std::int64_t lane) const;

  Channels channels_;
  QueryRows rows_ = {};
  AlignedArray<std::uint32_t> queries_;      ///< (pairs of channels, lanes)
  AlignedArray<float> state_, acc_;          ///< maxima and sums; (v_dim, lanes)
  AlignedArray<std::int32_t> first_, last_;  ///< (lanes) rows of the run at hand that are seen
  std::vector<KeyInterval> seen_;
  TileView view_ = {};
  bool has_subnormals_ = false;
};

/// A block of keys as pairs of channels: as they lie in memory, or with a zero after each row where
/// head_dim is odd.
class KeyBlock {
 public:
  KeyBlock(std::int64_t most_rows, const Channels& channels);

  void load(const BFloat16* keys, std::int64_t rows);
  const std::uint16_t* pairs(std::int64_t row) const {
    return pairs_ + 2 * row * channels_.pairs();
  }
  const BFloat16* raw(std::int64_t row) const { return raw_ + row * channels_.head_dim; }
  bool has_subnormals() const { return has_subnormals_; }

 private:
  Channels channels_;
  AlignedArray<std::uint16_t> padded_;
  const BFloat16* raw_ = nullptr;
  const std::uint16_t* pairs_ = nullptr;
  bool has_subnormals_ = false;
};

/// A block of values as panels; what is not finite is kept apart.
class ValueBlock {
 public:
  ValueBlock(std::int64_t most_rows, const Channels& channels);

  void load(const BFloat16* values, std::int64_t rows);
  /// The pair that row `row`, an even one, begins, in the first panel.
  const std::uint32_t* pair(std::int64_t row) const { return panels_.get() + row / 2 * kPanel; }
  std::int64_t panel_stride() const { return stride_; }
  /// Adds what is kept apart of rows first … first+count-1, where its weight is not 0. weights:
  /// (pairs, lanes), acc: (channels, lanes).
  void add_specials(std::int64_t first, std::int64_t count, const std::uint32_t* weights,
                    float* acc) const;

 private:
  struct Special {
    std::int64_t row, channel;
    float value;
  };
  void set_specials_apart(const BFloat16* values, std::int64_t rows);

  Channels channels_;
  std::int64_t stride_;  ///< one line more than it needs: no power of two, so that sets are shared
  AlignedArray<std::uint32_t> panels_;
  std::vector<Special> specials_;
};

}  // namespace ringlab::cpu::bf16_dot
