// The mask as a kernel sees it: plain arrays, and a test on global positions.
#pragma once

#include <cstdint>

#include "reference/core/mask.h"
#include "reference/core/memory_meter.h"
#include "stages/tile/array.h"

namespace ringlab::stages {

/// The keys that local query rows may see. Every query sees an interval of global key positions
/// (core/mask.h); a bit matrix can take some of them away again.
struct MaskRows {
  Array<const KeyInterval> visible;         ///< per local query row
  Array<const std::int64_t> key_positions;  ///< global position of each key of this call
  Array<const std::uint8_t> bits;           ///< (local rows, kv_tokens), or empty: all allowed
  std::int64_t kv_tokens = 0;

  /// True when local row `row` sees key `key` of this call.
  RINGLAB_HD bool allows(std::int64_t row, std::int64_t key) const {
    const std::int64_t position = key_positions[key];
    return visible[row].begin <= position && position < visible[row].end &&
           bits_allow(row, position);
  }
  RINGLAB_HD bool bits_allow(std::int64_t row, std::int64_t position) const {
    return bits.size == 0 || bits[row * kv_tokens + position] != 0;
  }

  /// The smallest interval that holds what rows first … first+count-1 see.
  RINGLAB_HD KeyInterval seen_by(std::int64_t first, std::int64_t count) const {
    KeyInterval hull{INT64_MAX, INT64_MIN};
    for (std::int64_t row = first; row < first + count; ++row) {
      if (visible[row].end <= visible[row].begin) continue;
      if (visible[row].begin < hull.begin) hull.begin = visible[row].begin;
      if (visible[row].end > hull.end) hull.end = visible[row].end;
    }
    return hull;
  }
  /// The smallest interval that holds the positions of keys first … first+count-1.
  RINGLAB_HD KeyInterval span_of(std::int64_t first, std::int64_t count) const {
    KeyInterval hull{INT64_MAX, INT64_MIN};
    for (std::int64_t key = first; key < first + count; ++key) {
      if (key_positions[key] < hull.begin) hull.begin = key_positions[key];
      if (key_positions[key] >= hull.end) hull.end = key_positions[key] + 1;
    }
    return hull;
  }

  template <class Visit>
  void for_each_array(Visit visit) {
    visit(visible);
    visit(key_positions);
    visit(bits);
  }
};

/// Owns what MaskRows points to, for the queries of one rank. O(queries) bytes, and O(queries ·
/// kv_tokens) where the mask has a bit matrix.
class MaskTable {
 public:
  MaskTable(const Mask& mask, const Positions& queries, MemoryMeter& meter);
  /// `key_positions` must outlive the result.
  MaskRows rows(const MeteredBuffer<std::int64_t>& key_positions) const;
  /// The rows' global positions.
  const Positions& queries() const { return queries_; }

 private:
  Positions queries_;
  std::int64_t kv_tokens_;
  MeteredBuffer<KeyInterval> visible_;
  MeteredBuffer<std::uint8_t> bits_;
};

/// Global positions as an array that a kernel can be given.
MeteredBuffer<std::int64_t> position_array(const Positions& positions, MemoryMeter& meter);

}  // namespace ringlab::stages
