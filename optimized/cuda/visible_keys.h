// The step from masks and positions to intervals of a chunk's rows, which kernels on devices take.
//
// Every mask but a bit matrix allows a query one interval of positions, and the positions of a
// chunk increase from row to row in every layout: a query therefore sees one interval of a chunk's
// rows, two integers, whatever the mask, the layout and the hop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/cuda/attention_call.h"
#include "reference/core/mask.h"
#include "reference/core/positions.h"

namespace ringlab::cuda {

/// The rows of the chunk that each query sees, in the order of `queries`; {0, 0} where it sees
/// nothing.
/// O((queries + runs) · log runs) time. Usage error for a mask with a bit matrix, for key positions
/// that do not increase, and for 2^31 rows or more.
std::vector<KeyRange> visible_rows(const Mask& mask, const Positions& queries,
                                   const Positions& keys);

/// True when each position is greater than the one before, as visible_rows() needs.
bool positions_increase(const Positions& keys);

/// The rows that each tile of `tile_queries` queries (the last one may hold fewer) sees together.
/// Empty ranges are {0, 0}; `all` lies inside `any`, and is empty where a query of the tile sees
/// nothing.
std::vector<TileKeys> visible_to_tiles(std::span<const KeyRange> rows, std::int32_t tile_queries);

/// True when every query sees all of the `keys` rows of the chunk: BlockMask::hides_nothing.
bool sees_all(std::span<const KeyRange> rows, std::int64_t keys);

}  // namespace ringlab::cuda
