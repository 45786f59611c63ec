// The shapes in which backward_hopper.cuh is compiled, and what it is given in each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "optimized/cuda/hopper/backward_hopper.cuh"
#include "optimized/cuda/hopper/tensor_map.h"

namespace ringlab::cuda {

/// Calls `visit` with the HopperBackwardTile for a call.
template <class Element, class Visitor>
void with_hopper_backward_tile(const BackwardCall<Element>& call, Visitor&& visit) {
  const std::int32_t channels = std::max(call.shape.head_dim, call.shape.v_dim);
  if (channels <= 64) return visit(HopperBackwardTile<Element, 64>{});
  return visit(HopperBackwardTile<Element, 128>{});
}

/// The number of thread blocks.
template <class Tile>
std::int64_t hopper_backward_blocks(const BlockShape& shape) {
  const std::int64_t blocks = (std::int64_t{shape.keys} + Tile::kKeys - 1) / Tile::kKeys;
  return blocks * shape.batch * shape.kv_heads;
}

/// `make_map` is make_tensor_map(), of the device or of its emulation. There is at least one query,
/// and one key.
template <class Tile, class MakeMap>
HopperBackwardParams<typename Tile::Element> hopper_backward_params(
    const BackwardCall<typename Tile::Element>& call, MakeMap&& make_map) {
  const BlockShape& shape = call.shape;
  const auto map = [&](const auto* base, std::int32_t heads, std::int32_t rows,
                       std::int32_t channels, int box_rows) {
    return make_map(BoxedTensor{.base = base,
                                .type = dtype_of<std::remove_cvref_t<decltype(*base)>>,
                                .heads = std::int64_t{shape.batch} * heads,
                                .rows = rows,
                                .channels = channels,
                                .box_rows = box_rows});
  };
  HopperBackwardParams<typename Tile::Element> params{
      .call = call,
      .q = map(call.q, shape.q_heads, shape.queries, shape.head_dim, Tile::kQueries),
      .dout = map(call.dout, shape.q_heads, shape.queries, shape.v_dim, Tile::kQueries),
      .k = map(call.k, shape.kv_heads, shape.keys, shape.head_dim, Tile::kKeys),
      .v = map(call.v, shape.kv_heads, shape.keys, shape.v_dim, Tile::kKeys),
      .dq = {},
      .section_heads = shape.batch * shape.kv_heads};
  if constexpr (Tile::kAdding == HopperAdding::boxes) {
    params.dq = map(call.dq, shape.q_heads, shape.queries, shape.head_dim, kWarpRows);
  }
  return params;
}

/// K/V heads whose dQ, of all their query heads, stays in the L2 cache.
inline std::int32_t heads_of_backward_section(const BlockShape& shape) {
  const std::int32_t group = shape.q_heads / shape.kv_heads;
  const std::int64_t dq_bytes = std::int64_t{group} * shape.queries * shape.head_dim * 4;
  return heads_of_section(dq_bytes, 1, shape.batch * shape.kv_heads);
}

}  // namespace ringlab::cuda
