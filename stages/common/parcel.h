// A place for a K/V chunk that is packed: a byte for each number, and a scale for each row.
#pragma once

#include <cstdint>

#include "stages/common/chunk_slot.h"

namespace ringlab::stages {

using Code = std::uint8_t;   // bits of an e4m3
using Scale = std::int16_t;  // the exponent of a power of two

/// A message tag, beside those of chunks.
inline constexpr int kScales = 5;

/// A packed chunk, with room for the largest. Rows are (batch, kv_heads, keys of the owner): those
/// of K, and after them those of V.
template <class Element>
struct Parcel {
  ChunkSlot<Code> codes;
  MeteredBuffer<Scale> scales;  ///< (2, rows)

  explicit Parcel(RankProblem<Element>& r)
      : codes(r), scales(r.memory, 2 * rows_of(r, r.kv_layout.largest_chunk())) {}

  /// Rows of K, and as many of V.
  std::int64_t rows(const RankProblem<Element>& r) const {
    return rows_of(r, r.kv_layout.positions(codes.owner).size());
  }
  std::span<std::byte> scale_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(scales.data(), 2 * rows(r));
  }
  std::int64_t bytes() const { return codes.bytes() + scales.bytes(); }

 private:
  static std::int64_t rows_of(const RankProblem<Element>& r, std::int64_t keys) {
    return r.k.extents.batch * r.k.extents.heads * keys;
  }
};

}  // namespace ringlab::stages
