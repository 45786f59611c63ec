// A mask cut into pieces that cuDNN can be asked for: rectangles of queries and keys, with at most
// a diagonal on either side.
//
// cuDNN knows diagonals from a corner and nothing else: no positions, no documents, no rings. But a
// query sees one interval of a chunk's rows (visible_keys.h), and from one query to the next its
// ends stay, or move by one; causal masks, windows, documents, prefixes and any mix of these are
// therefore a few pieces, whatever the layout and the hop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cudnn {

/// Queries and keys of a block; local query i sees local key j unless
/// - `rises`, and j > i + (keys - queries): the last key moves with the query, and the last query
///   sees the last key;
/// - `leaves`, and j < i: the first key moves with the query, and the first query sees the first.
/// Every query sees at least one key, and where there is a diagonal keys >= queries.
struct MaskPiece {
  cuda::KeyRange queries;
  cuda::KeyRange keys;
  bool rises = false;
  bool leaves = false;

  std::int32_t query_count() const { return queries.last - queries.first; }
  std::int32_t key_count() const { return keys.last - keys.first; }
  friend bool operator==(const MaskPiece&, const MaskPiece&) = default;
};

/// Pieces in the order of queries, which together hold every pair of `rows` once and no other.
/// Queries that see nothing are in none. Each piece is extended as far as it goes, so that there
/// are few.
std::vector<MaskPiece> cut_mask(std::span<const cuda::KeyRange> rows);

}  // namespace ringlab::cudnn
