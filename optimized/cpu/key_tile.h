// A tile of keys as the kernels read it: transposed, widened, with its global positions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/block_kernel.h"

namespace ringlab::cpu {

/// Keys first … first+count-1 of one head.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// out[j] = Σ_c row[c] · columns[c][j], summed in the order of c; columns has `stride` keys a row.
template <class Real>
void dot_all(const Real* row, const Real* columns, std::int64_t channels, KeyRange keys,
             std::int64_t stride, Real* out) {
  std::fill(out + keys.first, out + keys.first + keys.count, Real(0));
  for (std::int64_t c = 0; c < channels; ++c) {
    const Real factor = row[c];
    const Real* column = columns + c * stride;
    for (std::int64_t j = keys.first; j < keys.first + keys.count; ++j)
      out[j] += factor * column[j];
  }
}

/// to[c] += factor · from[c].
template <class Real, class From>
void add_scaled(Real* to, Real factor, const From* from, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) to[c] += factor * static_cast<Real>(from[c]);
}

/// `count` rows of `channels` values as (channels, stride), widened.
template <class Real, class Element>
void transpose(const Element* rows, std::int64_t count, std::int64_t channels, std::int64_t stride,
               Real* out) {
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out[c * stride + j] = static_cast<Real>(rows[j * channels + c]);
    }
  }
}

/// Rows that follow one another in memory, widened.
template <class Real, class Element>
void widen(const Element* values, std::int64_t count, Real* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Real>(values[i]);
}

/// Which keys of the tile each query may see.
class TileMask {
 public:
  TileMask(const Mask& mask, std::int64_t tile_keys)
      : mask_(mask), positions_(static_cast<std::size_t>(tile_keys)) {}

  void load(const Positions& keys, KeyRange tile) {
    std::int64_t row = 0;
    for (const PositionRun& run : keys.runs()) {
      const std::int64_t begin = std::max(tile.first, row);
      const std::int64_t end = std::min(tile.first + tile.count, row + run.count);
      for (std::int64_t i = begin; i < end; ++i) {
        positions_[static_cast<std::size_t>(i - tile.first)] = run.first + (i - row) * run.stride;
      }
      row += run.count;
    }
    count_ = tile.count;
    consecutive_ = count_ > 0 && at(count_ - 1) - at(0) == count_ - 1 && !mask_.has_bits();
  }

  /// The smallest range of the tile that holds all keys that `query` sees. O(tile) at most.
  KeyRange seen_by(std::int64_t query) const {
    const KeyInterval visible = mask_.interval(query);
    if (consecutive_) {
      const std::int64_t begin = std::max(visible.begin - at(0), std::int64_t{0});
      return {begin, std::max(std::min(visible.end - at(0), count_) - begin, std::int64_t{0})};
    }
    std::int64_t first = count_, last = -1;
    for (std::int64_t j = 0; j < count_; ++j) {
      if (!sees(query, visible, j)) continue;
      first = std::min(first, j);
      last = j;
    }
    return {first, std::max<std::int64_t>(0, last + 1 - first)};
  }
  /// Whether `query` sees key j of the tile.
  bool sees(std::int64_t query, const KeyInterval& visible, std::int64_t j) const {
    const std::int64_t position = at(j);
    return visible.begin <= position && position < visible.end &&
           (!mask_.has_bits() || mask_.bits_allow(query, position));
  }
  KeyInterval visible(std::int64_t query) const { return mask_.interval(query); }

 private:
  std::int64_t at(std::int64_t j) const { return positions_[static_cast<std::size_t>(j)]; }

  const Mask& mask_;
  std::vector<std::int64_t> positions_;
  bool consecutive_ = false;  // and no bit matrix: what a row sees is an interval of the tile
  std::int64_t count_ = 0;
};

}  // namespace ringlab::cpu
