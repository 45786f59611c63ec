// A tile of queries and its running state, from rows and back. Included once per target.
#if defined(RINGLAB_CPU_TILE_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_TILE_MEMORY_INL_H_
#undef RINGLAB_CPU_TILE_MEMORY_INL_H_
#else
#define RINGLAB_CPU_TILE_MEMORY_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/forward_tile-inl.h"
#include "optimized/cpu/lanes-inl.h"
#include "reference/core/mask.h"
#include "reference/core/state.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Tiles that hold the rows wanted at a time, of as many as there are; at least one.
template <class Real>
std::int64_t tiles_for(std::int64_t wanted, std::int64_t rows) {
  const std::int64_t held = std::min(wanted, rows), width = tile_width<Real>();
  return std::max<std::int64_t>(1, (held + width - 1) / width);
}

/// The interval of positions that the query of each lane sees; turned into rows run by run.
template <class Real>
class TileSight {
 public:
  TileSight()
      : bounds_(aligned_array<Index<Real>>(2 * tile_width<Real>())),
        seen_(static_cast<std::size_t>(tile_width<Real>())) {}

  /// Lanes from `count` on repeat the last row, so that they never make a block look less full.
  void load(const std::int64_t* positions, const Mask& mask, std::int64_t count) {
    for (std::int64_t lane = 0; lane < tile_width<Real>(); ++lane) {
      seen_[static_cast<std::size_t>(lane)] = mask.interval(positions[std::min(lane, count - 1)]);
    }
  }
  /// Turns a tile, whose first `count` lanes are rows, to the next run of keys.
  void look_at(const PositionRun& run, std::int64_t count, QueryTile<Real>& tile) {
    const std::int64_t width = tile_width<Real>();
    tile.first = bounds_.get();
    tile.last = bounds_.get() + width;
    tile.view = {};
    std::fill_n(tile.ends, kTileVectors, std::int64_t{0});
    // One vector alone is faster than three, but two alone are not.
    const std::int64_t rows_that_count = count <= lanes<Real>() ? count : width;
    for (std::int64_t lane = 0; lane < width; ++lane) {
      const RowRange rows = rows_in(run, seen_[static_cast<std::size_t>(lane)]);
      tile.first[lane] = static_cast<Index<Real>>(rows.first);
      tile.last[lane] = static_cast<Index<Real>>(rows.last);
      tile.view.add(rows, lane == 0);
      std::int64_t& end = tile.ends[lane / lanes<Real>()];
      if (lane < rows_that_count) end = std::max(end, rows.last);
    }
  }

 private:
  AlignedArray<Index<Real>> bounds_;
  std::vector<KeyInterval> seen_;
};

/// Asks a bit matrix about every pair of the block's keys and the first `count` lanes, whose
/// queries stand at `positions`; hides the scores it does not allow.
template <class Real>
void hide_bits(const Mask& mask, const PositionRun& run, const KeyBlock<Real>& block,
               const std::int64_t* positions, std::int64_t count, Real* scores) {
  for (std::int64_t j = 0; j < block.count; ++j) {
    const std::int64_t key = run.first + (block.first + j) * run.stride;
    for (std::int64_t lane = 0; lane < count; ++lane) {
      if (mask.bits_allow(positions[lane], key)) continue;
      scores[j * tile_width<Real>() + lane] = kEmptyRowMax<Real>;
    }
  }
}

/// A tile of queries with the memory of its state, filled from rows and written back to them.
template <class Real>
class TileMemory {
 public:
  explicit TileMemory(const Channels<Real>& channels)
      : channels_(channels),
        values_(
            aligned_array<Real>((channels.head_dim + channels.v_dim + 2) * tile_width<Real>())) {
    const std::int64_t width = tile_width<Real>();
    Real* const values = values_.get();
    tile_ = {.queries = values,
             .row_max = values + channels.head_dim * width,
             .row_sum = values + (channels.head_dim + 1) * width,
             .acc = values + (channels.head_dim + 2) * width,
             .first = nullptr,
             .last = nullptr};
  }

  QueryTile<Real>& tile() { return tile_; }

  /// Takes `count` rows in; lanes beyond them repeat the last.
  template <class Element>
  void load(const Element* q, const SoftmaxState<Real>* states, const Real* accs,
            const std::int64_t* positions, const Mask& mask, std::int64_t count) {
    count_ = count;
    sight_.load(positions, mask, count);
    into_lanes(q, count, channels_.head_dim, tile_.queries);
    into_lanes(accs, count, channels_.v_dim, tile_.acc);
    for (std::int64_t lane = 0; lane < tile_width<Real>(); ++lane) {
      const std::int64_t row = std::min(lane, count - 1);
      tile_.row_max[lane] = states[row].row_max;
      tile_.row_sum[lane] = states[row].row_sum;
    }
  }
  void store(SoftmaxState<Real>* states, Real* accs) const {
    out_of_lanes<Leave::replacing>(tile_.acc, count_, channels_.v_dim, accs);
    for (std::int64_t row = 0; row < count_; ++row) {
      states[row] = {tile_.row_max[row], tile_.row_sum[row]};
    }
  }
  void look_at(const PositionRun& run) { sight_.look_at(run, count_, tile_); }
  std::int64_t count() const { return count_; }

 private:
  Channels<Real> channels_;
  AlignedArray<Real> values_;
  TileSight<Real> sight_;
  QueryTile<Real> tile_ = {};
  std::int64_t count_ = 0;  ///< lanes that are rows
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
