// dQ of one chunk in a fixed order of additions: the same bits from run to run.
//
// A block of four warps has one tile of queries of one head and goes through the tiles of keys that
// it sees, from the first on: it computes P and dS once more, and adds dS K in registers.
//
//   shared memory   | Q | dO | K stage 0, 1 | V stage 0, 1 | dS |
#pragma once

#include <cstdint>

#include "optimized/cuda/portable/backward_tiles.cuh"

namespace ringlab::cuda {

template <int kChannels>
struct QueryBlockMemory {
  using Tiles = BackwardTiles<kChannels>;
  static constexpr int kKeyPlace = 2 * Tiles::kQueryBytes;
  static constexpr int kPairPlace = kKeyPlace + 2 * Tiles::kStages * Tiles::kKeyBytes;
  static constexpr int kSharedBytes = kPairPlace + Tiles::kPairBytes;

  RINGLAB_KERNEL_CODE static SharedTile<kChannels> q() { return {shared_memory()}; }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> dout() {
    return {shared_memory() + Tiles::kQueryBytes};
  }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> k(int step) {
    return {shared_memory() + kKeyPlace + step % Tiles::kStages * Tiles::kKeyBytes};
  }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> v(int step) {
    return {k(step).data + Tiles::kStages * Tiles::kKeyBytes};
  }
  RINGLAB_KERNEL_CODE static typename Tiles::PairTile ds() {
    return {shared_memory() + kPairPlace};
  }
};

/// Adds a warp's share of dQ to memory: no other warp has these rows.
template <class Element, int kChannels, int kCount>
RINGLAB_KERNEL_CODE void leave_query_gradients(const float (&dq)[kCount][4],
                                               const BackwardCall<Element>& call,
                                               const BackwardRows& rows, std::int64_t head) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    const int channel =
        BackwardTiles<kChannels>::warp_query_channel() + n * kUnit + lane_index() % 4 * 2;
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      if (rows.query[i] >= call.shape.queries || channel >= call.shape.head_dim) continue;
      const std::int64_t row = head * call.shape.queries + rows.query[i];
      add_pair(call.dq + row * call.shape.head_dim + channel, dq[n][2 * i], dq[n][2 * i + 1]);
    }
  }
}

/// A block of kBackwardThreads threads; there are batch · q_heads · ceil(queries / kQueries).
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void backward_queries_block(const BackwardCall<Element>& call) {
  using Tiles = BackwardTiles<kChannels>;
  using Memory = QueryBlockMemory<kChannels>;
  const BlockShape& shape = call.shape;
  const int heads = shape.batch * shape.q_heads;
  const int tile = (shape.queries - 1) / Tiles::kQueries - block_index() / heads;
  const std::int64_t head = block_index() % heads;
  const std::int64_t kv_head = head / (shape.q_heads / shape.kv_heads);
  const KeyRange any = call.mask.tiles[tile].any;
  if (any.first >= any.last) return;

  const auto fetch = [&](int step) {
    const int first = any.first + step * Tiles::kKeys;
    copy_tile<Tiles::kKeys, kBackwardThreads>(
        Memory::k(step), head_rows(call.k, kv_head, shape.keys, shape.head_dim), first, any);
    copy_tile<Tiles::kKeys, kBackwardThreads>(
        Memory::v(step), head_rows(call.v, kv_head, shape.keys, shape.v_dim), first, any);
    commit_copies();
  };
  const int first_query = tile * Tiles::kQueries;
  const KeyRange exists{0, shape.queries};
  copy_tile<Tiles::kQueries, kBackwardThreads>(
      Memory::q(), head_rows(call.q, head, shape.queries, shape.head_dim), first_query, exists);
  copy_tile<Tiles::kQueries, kBackwardThreads>(
      Memory::dout(), head_rows(call.dout, head, shape.queries, shape.v_dim), first_query, exists);
  fetch(0);

  const BackwardRows rows = load_rows(call, head, first_query + Tiles::warp_query());
  float dq[Tiles::kQueryChannels / kUnit][4];
  clear(dq);
  const int steps = (any.last - any.first + Tiles::kKeys - 1) / Tiles::kKeys;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<0>();
    clear_not_finite<Element, Tiles::kKeys, kBackwardThreads>(Memory::k(step));
    sync_block();  // all of K and V are there; nobody reads dS or the other stage any more
    if (Tiles::kStages > 1 && step + 1 < steps) fetch(step + 1);

    const MeetingTiles<kChannels> tiles{Memory::q(), Memory::dout(), Memory::k(step),
                                        Memory::v(step), any.first + step * Tiles::kKeys};
    const auto pair = pair_gradients<Element>(tiles, rows, call.scale);
    store_pair<Element>(Memory::ds(), pair.ds, Tiles::warp_query(), Tiles::warp_key());
    sync_block();  // all of dS is there
    add_query_gradients<Element>(dq, Memory::ds(), Memory::k(step), Tiles::warp_query_channel());
    if (Tiles::kStages == 1) {
      sync_block();  // everybody is done with the only stage
      if (step + 1 < steps) fetch(step + 1);
    }
  }
  leave_query_gradients<Element, kChannels>(dq, call, rows, head);
}

}  // namespace ringlab::cuda
