// Memory of a tile and a group of queries for the backward pass in bf16 products.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16/bf16_dot_backward_tile.h"
#include "optimized/cpu/bf16/bf16_dot_lanes.h"
#include "optimized/cpu/bf16/bf16_dot_memory.h"
#include "reference/core/mask.h"
#include "reference/core/small_float.h"

namespace ringlab::cpu::bf16_dot {

/// Some consecutive queries of a head, and their inputs of the backward pass.
struct PairedGradientRows {
  const BFloat16 *q, *dout;
  const float *lse, *delta;
  const std::int64_t* positions;
  std::int64_t count;
};

/// A tile of up to kWidth such queries, lanes along queries, and its dQ.
class PairedGradients {
 public:
  explicit PairedGradients(const PairedChannels& channels);

  void load(const PairedGradientRows& rows, const Mask& mask);
  /// Adds the tile's dQ to its rows of the block's.
  void add_to(float* dq) const;

  const PairedGradientRows& rows() const { return rows_; }
  const LaneRows& queries() const { return queries_; }
  const LaneRows& douts() const { return douts_; }
  LaneSight& sight() { return sight_; }
  const LaneSight& sight() const { return sight_; }
  const float* lse() const { return lanes_.get(); }  ///< in powers of two
  const float* delta() const { return lanes_.get() + kWidth; }
  float* dq() { return dq_.get(); }  ///< (head_dim in panels, lanes)

 private:
  PairedChannels channels_;
  PairedGradientRows rows_ = {};
  LaneRows queries_, douts_;
  LaneSight sight_;
  AlignedArray<float> lanes_, dq_;
};

/// Matrices of 16 pairs reach half of one beyond an odd number of tiles.
inline constexpr std::int64_t kMoreRows = 16;
static_assert(kTilePairs % 16 == kMoreRows / 2);

/// Rows of q or dO of a group of tiles as panels of pairs of rows; numbers that are lost in
/// products are kept apart.
class RowPanels {
 public:
  RowPanels(std::int64_t tiles, std::int64_t channels, const Products& products);

  void load(const BFloat16* values, std::int64_t rows);
  /// sums (keys, channels) += weights of the tiles first … last-1 times their rows. weights: the
  /// row of the first key, from the group's first query on.
  struct WeightedSum {
    const std::uint16_t* weights;
    std::int64_t weight_stride;
    std::int64_t keys;
    std::int64_t first_tile, last_tile;
    float* sums;
  };
  void add_to(const WeightedSum& sum) const;

 private:
  void add_specials(const WeightedSum& sum) const;

  std::int64_t channels_;
  const Products& products_;
  std::int64_t stride_;
  AlignedArray<std::uint32_t> panels_;
  std::vector<LostNumber> specials_;
};

/// P and dS of a group of tiles and a block of keys, and kMoreRows queries after the last.
class WeightMemory {
 public:
  WeightMemory(std::int64_t tiles, std::int64_t keys);

  /// The memory from key `key` of the block and the first query of tile `tile` on.
  WeightRows at(std::int64_t key, std::int64_t tile) const;
  /// Sets the weights of keys first … last-1 for one tile to 0.
  void clear(std::int64_t first, std::int64_t last, std::int64_t tile);
  /// Sets the weights of keys 0 … keys-1 for the queries after so many tiles to 0.
  void clear_after(std::int64_t tiles, std::int64_t keys);

 private:
  void clear(const WeightRows& rows, std::int64_t keys, std::int64_t queries);

  std::int64_t stride_;
  AlignedArray<std::uint16_t> p_, ds_;
};

}  // namespace ringlab::cpu::bf16_dot
