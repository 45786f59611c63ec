// Memory of a tile of queries and a block of keys for the bf16 dot product.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16/bf16_dot_lanes.h"
#include "optimized/cpu/bf16/bf16_dot_products.h"
#include "reference/core/mask.h"
#include "reference/core/small_float.h"
#include "reference/core/state.h"

namespace ringlab::cpu::bf16_dot {

struct PairedChannels {
  std::int64_t head_dim, v_dim;
  const Products& products;

  /// `channels`, rounded up to whole panels.
  std::int64_t in_panels(std::int64_t channels) const {
    return products.panels_of(channels) * products.panel;
  }
};

/// Some consecutive queries of a head, with their states.
struct PairedQueryRows {
  const BFloat16* q;
  const SoftmaxState<float>* states;
  const float* accs;
  const std::int64_t* positions;
  std::int64_t count;
};

/// A tile of up to kWidth such queries, lanes along queries; lanes beyond the rows repeat the last.
class PairedQueries {
 public:
  explicit PairedQueries(const PairedChannels& channels);

  void load(const PairedQueryRows& rows, const Mask& mask);
  void store(SoftmaxState<float>* states, float* accs) const;

  const PairedQueryRows& rows() const { return rows_; }
  const LaneRows& queries() const { return queries_; }
  LaneSight& sight() { return sight_; }
  const LaneSight& sight() const { return sight_; }
  float* row_max() { return state_.get(); }
  float* row_sum() { return state_.get() + kWidth; }
  float* acc() { return acc_.get(); }  ///< (v_dim in panels, lanes)

 private:
  PairedChannels channels_;
  PairedQueryRows rows_ = {};
  LaneRows queries_;
  LaneSight sight_;
  AlignedArray<float> state_, acc_;  ///< maxima and sums; (v_dim in panels, lanes)
};

/// A block of keys as pairs of channels: as they lie in memory, or filled up with zeros where there
/// are fewer channels or rows than are multiplied together.
class PairedKeys {
 public:
  PairedKeys(std::int64_t most_rows, std::int64_t channels, const Products& products);

  void load(const BFloat16* keys, std::int64_t rows);
  const std::uint16_t* pairs(std::int64_t row) const { return pairs_ + width_ * row; }
  const BFloat16* raw(std::int64_t row) const { return raw_ + row * channels_; }
  bool has_subnormals() const { return has_subnormals_; }

 private:
  void fill_up(std::int64_t rows);

  std::int64_t channels_;
  std::int64_t width_;  ///< channels, filled up
  std::int64_t unit_;   ///< of rows
  AlignedArray<std::uint16_t> filled_;
  const BFloat16* raw_ = nullptr;
  const std::uint16_t* pairs_ = nullptr;
  bool has_subnormals_ = false;
};

/// A number that is kept apart from products.
struct LostNumber {
  std::int64_t row, channel;
  float value;
};
/// Numbers that products must not use: infinities and NaN, which spoil a product with 0, and
/// subnormals, which the instruction reads as 0; these matter where the other factor may be large.
enum class Apart { not_finite, not_finite_or_subnormal };
/// The lost numbers of dense rows, row by row.
std::vector<LostNumber> specials_of(const BFloat16* values, std::int64_t rows,
                                    std::int64_t channels, Apart apart);

/// A block of values as panels, in the layout of `products`; some numbers are kept apart.
class ValueBlock {
 public:
  ValueBlock(std::int64_t most_rows, std::int64_t channels, Apart apart, const Products& products);

  void load(const BFloat16* values, std::int64_t rows);
  /// The pairs that row `row` begins, a multiple of those that are summed together, in the first
  /// panel.
  const std::uint32_t* pair(std::int64_t row) const {
    return panels_.get() + row / 2 * products_.panel;
  }
  std::int64_t panel_stride() const { return stride_; }
  /// Adds the numbers that are kept apart of rows first … first+count-1, where their weight is not
  /// 0. weights: (pairs, lanes), acc: (channels, lanes).
  void add_specials(std::int64_t first, std::int64_t count, const std::uint32_t* weights,
                    float* acc) const;

 private:
  std::uint32_t& pair_at(std::int64_t row, std::int64_t channel);

  std::int64_t channels_;
  Apart apart_;
  const Products& products_;
  std::int64_t stride_;  ///< a line more than needed: a power of two would use few cache sets
  AlignedArray<std::uint32_t> panels_;
  std::vector<LostNumber> specials_;
};

}  // namespace ringlab::cpu::bf16_dot
