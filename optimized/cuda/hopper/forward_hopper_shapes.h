// The shapes in which forward_hopper.cuh is compiled, and its parameters in each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "optimized/cuda/hopper/forward_hopper.cuh"
#include "optimized/cuda/hopper/tensor_map.h"

namespace ringlab::cuda {

/// Calls `visit` with the HopperTile for a call. Registers decide: with C channels and T
/// keys in a block a thread holds C / 2 accumulators, T / 2 scores and T / 4 packed weights.
template <class Element, class Visitor>
void with_hopper_tile(const ForwardCall<Element>& call, Visitor&& visit) {
  const std::int32_t channels = std::max(call.shape.head_dim, call.shape.v_dim);
  if (channels <= 64) return visit(HopperTile<Element, 64, 3, 128, 2>{});
  if (channels <= 128) return visit(HopperTile<Element, 128, 2, 128, 2, kTacticsAt128>{});
  if (channels <= 192) return visit(HopperTile<Element, 192, 2, 96, 2>{});
  return visit(HopperTile<Element, 256, 2, 80, 2>{});
}

/// The kernel's parameters. `make_map` is make_tensor_map(), of the device or of its emulation.
/// There is at least one query.
template <class Tile, class MakeMap>
HopperParams<typename Tile::Element> hopper_params(const ForwardCall<typename Tile::Element>& call,
                                                   MakeMap&& make_map) {
  const BlockShape& shape = call.shape;
  const auto map = [&](const void* base, std::int32_t heads, std::int32_t rows,
                       std::int32_t channels, int box_rows) {
    return make_map(BoxedTensor{.base = base,
                                .type = dtype_of<typename Tile::Element>,
                                .heads = std::int64_t{shape.batch} * heads,
                                .rows = rows,
                                .channels = channels,
                                .box_rows = box_rows});
  };
  // The heads of a cluster count as one: they share a K/V head, see the same keys, and go together.
  const std::int32_t heads = shape.batch * shape.q_heads / Tile::kCluster;
  const std::int32_t group = shape.q_heads / shape.kv_heads / Tile::kCluster;
  const std::int64_t head_bytes = std::int64_t{shape.keys} * (shape.head_dim + shape.v_dim) * 2;
  HopperParams<typename Tile::Element> params{
      .call = call,
      .q = map(call.q, shape.q_heads, shape.queries, shape.head_dim, Tile::kQueries),
      .k = {},
      .v = {},
      .out = {},
      .order = {.heads = heads,
                .tiles = (shape.queries - 1) / Tile::kQueries + 1,
                .section_heads = heads_of_section(head_bytes, group, heads)}};
  if (Tile::kTactics.stores_boxes && call.finishes) {
    params.out = map(call.out, shape.q_heads, shape.queries, shape.v_dim, kWarpRows);
  }
  if (shape.keys == 0) return params;  // no tile sees any: the maps are not used
  params.k = map(call.k, shape.kv_heads, shape.keys, shape.head_dim, Tile::kBoxKeys);
  params.v = map(call.v, shape.kv_heads, shape.keys, shape.v_dim, Tile::kBoxKeys);
  return params;
}

}  // namespace ringlab::cuda
