// The tiles of queries that a block of keys meets: the loop of the backward pass by keys.
//
// Tiles of BlockMask::tiles may be smaller than those that a kernel computes with, since other
// kernels use the same ones: a tile here is `parts` of them.
#pragma once

#include <cstdint>

#include "optimized/cuda/attention_call.h"
#include "reference/core/host_device.h"

namespace ringlab::cuda {

/// The way in which a tile meets the keys. none: no query sees any of the keys. full: all queries
/// exist, as do all keys, and see each other. partial: all other tiles, also where it is not known.
enum class TileMeeting : std::int32_t { none, partial, full };

/// Tiles first … last - 1.
struct TileSpan {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// Goes through the tiles that meet the keys first_key … first_key + block_keys - 1, head by head.
/// Begins before the first one.
struct QueryWalk {
  const TileKeys* mask_tiles = nullptr;
  std::int32_t mask_queries = 64;  ///< of a tile of the mask
  std::int32_t parts = 1;
  std::int32_t queries = 0;
  std::int32_t heads = 1;
  std::int32_t first_key = 0;
  std::int32_t block_keys = 64;
  TileSpan span;  ///< no tile outside meets the keys

  std::int32_t head = 0;
  std::int32_t tile = -1;
  TileMeeting meeting = TileMeeting::none;  ///< of this tile; none at the end

  RINGLAB_HD constexpr std::int32_t tile_queries() const { return mask_queries * parts; }
  RINGLAB_HD constexpr std::int32_t first_query() const { return tile * tile_queries(); }

  RINGLAB_HD constexpr std::int32_t tiles() const {
    return queries == 0 ? 0 : (queries - 1) / tile_queries() + 1;
  }

  RINGLAB_HD constexpr bool advance() {
    for (; head < heads; ++head, tile = -1) {
      if (tile < span.first) tile = span.first - 1;
      while (++tile < span.last) {
        meeting = meeting_of(tile);
        if (meeting != TileMeeting::none) return true;
      }
    }
    meeting = TileMeeting::none;
    return false;
  }

  RINGLAB_HD constexpr TileMeeting meeting_of(std::int32_t which) const {
    const std::int32_t mask_count = (queries - 1) / mask_queries + 1;
    bool any = false;
    bool all = queries / tile_queries() > which;  // the tile has all its queries
    for (std::int32_t part = which * parts; part < (which + 1) * parts; ++part) {
      if (part >= mask_count) break;
      const TileKeys keys = mask_tiles[part];
      any = any || (keys.any.first < keys.any.last && keys.any.first < first_key + block_keys &&
                    keys.any.last > first_key);
      all = all && keys.all.first <= first_key && keys.all.last >= first_key + block_keys;
    }
    if (!any) return TileMeeting::none;
    return all ? TileMeeting::full : TileMeeting::partial;
  }
};

/// The keys of a K/V head that a thread block has, and the first of the query heads that it meets.
struct BlockKeys {
  std::int32_t first_key;
  std::int32_t kv_head;     ///< of all batches, numbered through
  std::int32_t first_head;  ///< a query head of all batches
};

/// The shares of thread blocks, and their order. Early keys come first: under masks that look back
/// most queries see them, and the longest shares should not begin last. Query heads come in
/// sections, all keys of one before those of the next, so that dQ, Q and dO of a section, which its
/// blocks add to and read, stay in the L2 cache. The last section may hold fewer heads.
struct BackwardOrder {
  std::int32_t block_keys;
  std::int32_t block_heads;    ///< query heads of a thread block: 1, or all that read a K/V head
  std::int32_t section_heads;  ///< query heads of a section: a multiple of block_heads
};

RINGLAB_HD constexpr std::int32_t key_blocks(const BlockShape& shape, const BackwardOrder& order) {
  return (shape.keys - 1) / order.block_keys + 1;
}

/// The share of a thread block, 0 <= index < key_blocks · batch · q_heads / block_heads. There is
/// at least one key.
RINGLAB_HD constexpr BlockKeys key_block_at(const BlockShape& shape, const BackwardOrder& order,
                                            std::int32_t index) {
  const std::int32_t in_section = order.section_heads / order.block_heads;
  const std::int32_t blocks = key_blocks(shape, order);
  const std::int32_t first = index / (in_section * blocks) * in_section;
  const std::int32_t left = shape.batch * shape.q_heads / order.block_heads - first;
  const std::int32_t now = left < in_section ? left : in_section;
  const std::int32_t within = index - first * blocks;
  const std::int32_t head = (first + within % now) * order.block_heads;
  return {within / now * order.block_keys, head / (shape.q_heads / shape.kv_heads), head};
}

}  // namespace ringlab::cuda
