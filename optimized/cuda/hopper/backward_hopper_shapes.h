// The shapes in which backward_hopper.cuh is compiled, and its parameters in each.
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
inline std::int64_t hopper_backward_blocks(const BlockShape& shape, const BackwardOrder& order) {
  return std::int64_t{key_blocks(shape, order)} * shape.batch * shape.q_heads / order.block_heads;
}

/// A query head for each block, in sections whose Q, dO and dQ stay in the L2 cache: short blocks, so
/// that multiprocessors end together.
inline BackwardOrder order_by_heads(const BlockShape& shape, std::int32_t block_keys) {
  const std::int64_t bytes =
      std::int64_t{shape.queries} * (shape.head_dim * (4 + 2) + shape.v_dim * 2);
  const std::int32_t heads = shape.batch * shape.q_heads;
  return {block_keys, 1, heads_of_section(bytes, 1, heads)};
}

/// All query heads of a K/V head for each block, which alone adds to the gradients of its keys.
inline BackwardOrder order_by_groups(const BlockShape& shape, std::int32_t block_keys) {
  return {block_keys, shape.q_heads / shape.kv_heads, shape.batch * shape.q_heads};
}

/// The kernel's parameters. `make_map` is make_tensor_map(), of the device or of its emulation.
/// There is at least one query, and one key.
template <class Tile, class MakeMap>
HopperBackwardParams<typename Tile::Element> hopper_backward_params(
    const BackwardCall<typename Tile::Element>& call, const BackwardOrder& order,
    MakeMap&& make_map) {
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
      .order = order};
  if constexpr (Tile::kAdding == HopperAdding::boxes) {
    params.dq = map(call.dq, shape.q_heads, shape.queries, shape.head_dim, kWarpRows);
  }
  return params;
}

}  // namespace ringlab::cuda
