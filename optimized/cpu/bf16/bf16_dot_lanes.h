// Rows of a tile with a lane for each, for the bf16 dot product.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16/bf16_dot_tile.h"
#include "optimized/cpu/visible_rows.h"
#include "reference/core/mask.h"
#include "reference/core/small_float.h"

namespace ringlab::cpu::bf16_dot {

inline const std::uint16_t* bits_of(const BFloat16* values) {
  static_assert(sizeof(BFloat16) == sizeof(std::uint16_t));
  return &values->bits;
}
float widened(std::uint32_t bits);
bool is_subnormal(BFloat16 value);

/// Up to kWidth rows as pairs of channels, filled up with zeros; lanes beyond them repeat the last.
class LaneRows {
 public:
  LaneRows(std::int64_t channels, std::int64_t pairs);

  void load(const BFloat16* rows, std::int64_t count);
  const std::uint32_t* pairs() const { return pairs_.get(); }  ///< (pairs of channels, lanes)

  /// Adds the products that score() lacks: of subnormal numbers of these rows, and of the keys.
  void add_subnormal_rows(const BFloat16* keys, std::int64_t count, float* scores) const;
  void add_subnormal_keys(const BFloat16* keys, std::int64_t count, float* scores) const;
  bool has_subnormals() const { return has_subnormals_; }

 private:
  const BFloat16* row_of(std::int64_t lane) const;

  std::int64_t channels_;
  const BFloat16* rows_ = nullptr;
  std::int64_t count_ = 0;
  AlignedArray<std::uint32_t> pairs_;
  bool has_subnormals_ = false;
};

/// The interval that the query of each lane sees, as positions; turned into rows run by run.
class LaneSight {
 public:
  LaneSight();

  /// Lanes from `count` on repeat the last, so that they never make a block look less full.
  void load(const std::int64_t* positions, std::int64_t count, const Mask& mask);
  void look_at(const PositionRun& run);
  const TileView& view() const { return view_; }
  LaneBounds bounds() const { return {first_.get(), last_.get()}; }

 private:
  AlignedArray<std::int32_t> first_, last_;  ///< (lanes) rows of the run at hand that are seen
  std::vector<KeyInterval> seen_;
  TileView view_ = {};
};

}  // namespace ringlab::cpu::bf16_dot
