// The backward pass of one chunk on tensor cores of any GPU since sm_80, by keys: dK and dV, and dQ
// by atomic additions.
//
// A block of four warps has one tile of keys of one K/V head. It meets the tiles of queries that
// see some of its keys, of all query heads that read this K/V head, one after the other:
//
//   shared memory   | K | V | Q stage 0, 1 | dO stage 0, 1 | P | dS |
//
//   wait for Q, dO → fetch the next ones → S = Q Kᵀ, dP = dO Vᵀ → P, dS into shared memory
//                  → dV += Pᵀ dO, dK += dSᵀ Q (registers), dQ += dS K (memory)
//
// backward_queries.cuh makes dQ in a fixed order instead.
#pragma once

#include <cstdint>

#include "optimized/cuda/portable/backward_tiles.cuh"

namespace ringlab::cuda {

/// The kernel that makes dQ: this one, by atomic additions in any order, or another one.
enum class TileGradients { here, elsewhere };

template <int kChannels>
struct KeyBlockMemory {
  using Tiles = BackwardTiles<kChannels>;
  static constexpr int kQueryPlace = 2 * Tiles::kKeyBytes;
  static constexpr int kPairPlace = kQueryPlace + 2 * Tiles::kStages * Tiles::kQueryBytes;
  static constexpr int kSharedBytes = kPairPlace + 2 * Tiles::kPairBytes;

  RINGLAB_KERNEL_CODE static SharedTile<kChannels> k() { return {shared_memory()}; }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> v() {
    return {shared_memory() + Tiles::kKeyBytes};
  }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> q(int step) {
    return {shared_memory() + kQueryPlace + step % Tiles::kStages * Tiles::kQueryBytes};
  }
  RINGLAB_KERNEL_CODE static SharedTile<kChannels> dout(int step) {
    return {q(step).data + Tiles::kStages * Tiles::kQueryBytes};
  }
  RINGLAB_KERNEL_CODE static typename Tiles::PairTile p() { return {shared_memory() + kPairPlace}; }
  RINGLAB_KERNEL_CODE static typename Tiles::PairTile ds() {
    return {shared_memory() + kPairPlace + Tiles::kPairBytes};
  }
};

/// The keys of the head that this block has.
struct KeyPlace {
  KeyRange keys;  ///< those that exist
  std::int64_t kv_head;
};
template <int kKeys>
RINGLAB_KERNEL_CODE KeyPlace key_place(const BlockShape& shape, int block) {
  const int heads = shape.batch * shape.kv_heads;
  const int first = block / heads * kKeys;  // under causal masks most queries see early keys
  const int last = first + kKeys < shape.keys ? first + kKeys : shape.keys;
  return {{first, last}, block % heads};
}

/// Goes through the tiles of queries that see some of the keys, head by head.
struct QueryTiles {
  const TileKeys* tiles;
  int count;  ///< of tiles
  int heads;  ///< query heads for this K/V head
  KeyRange keys;
  int head = 0;
  int tile = -1;

  RINGLAB_KERNEL_CODE bool meets() const {
    const KeyRange any = tiles[tile].any;
    return any.first < any.last && any.first < keys.last && any.last > keys.first;
  }
  RINGLAB_KERNEL_CODE bool sees_all() const {
    return covers(tiles[tile].all, keys.first, keys.last - keys.first);
  }
  RINGLAB_KERNEL_CODE void advance() {
    do {
      if (++tile == count) {
        tile = 0;
        ++head;
      }
    } while (!ended() && !meets());
  }
  RINGLAB_KERNEL_CODE bool ended() const { return count == 0 || head >= heads; }
};

/// A warp's share of dK and dV: 16 keys, some channels.
template <int kChannels>
struct KeyGradients {
  using Tiles = BackwardTiles<kChannels>;
  static constexpr int kKeyWarps = Tiles::kKeys / kFragmentRows;
  static constexpr int kWarpChannels = kChannels * kKeyWarps / kBackwardWarps;
  RINGLAB_KERNEL_CODE static int warp_key() { return warp_index() % kKeyWarps * kFragmentRows; }
  RINGLAB_KERNEL_CODE static int warp_channel() { return warp_index() / kKeyWarps * kWarpChannels; }
  float dk[kWarpChannels / kUnit][4];
  float dv[kWarpChannels / kUnit][4];
};

/// d += Aᵀ B for this warp's keys: A is P or dS, B dO or Q.
template <class Element, int kChannels, int kKeys, int kCount>
RINGLAB_KERNEL_CODE void add_key_gradients(float (&d)[kCount][4], SharedTile<kKeys> a,
                                           SharedTile<kChannels> b) {
  using Gradients = KeyGradients<kChannels>;
  RINGLAB_UNROLL
  for (int query = 0; query < BackwardTiles<kChannels>::kQueries; query += kFragmentRows) {
    std::uint32_t left[4];
    load_left_transposed(left, a, query, Gradients::warp_key());
    add_weighted_rows<Element>(d, left, b, query, Gradients::warp_channel());
  }
}

/// dQ += dS K in memory; a few channels at a time, for want of registers.
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void scatter_query_gradients(const BackwardCall<Element>& call,
                                                 const BackwardRows& rows, std::int64_t head) {
  using Tiles = BackwardTiles<kChannels>;
  using Memory = KeyBlockMemory<kChannels>;
  constexpr int kSome = 32;
  for (int part = 0; part < Tiles::kQueryChannels; part += kSome) {
    const int first = Tiles::warp_query_channel() + part;
    float dq[kSome / kUnit][4];
    clear(dq);
    add_query_gradients<Element>(dq, Memory::ds(), Memory::k(), first);
    RINGLAB_UNROLL
    for (int n = 0; n < kSome / kUnit; ++n) {
      const int channel = first + n * kUnit + lane_index() % 4 * 2;
      RINGLAB_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int query = rows.query[i / 2];
        if (query >= call.shape.queries || channel >= call.shape.head_dim) continue;
        const std::int64_t row = head * call.shape.queries + query;
        atomic_add(call.dq + row * call.shape.head_dim + channel + i % 2, dq[n][i]);
      }
    }
  }
}

/// Adds a warp's sums of dK or dV to the gradient in memory, (keys, channels).
template <int kChannels, int kCount>
RINGLAB_KERNEL_CODE void leave_key_gradients(const float (&d)[kCount][4], float* head,
                                             std::int32_t channels, KeyRange keys) {
  using Gradients = KeyGradients<kChannels>;
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    const int channel = Gradients::warp_channel() + n * kUnit + lane_index() % 4 * 2;
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int key = keys.first + Gradients::warp_key() + lane_index() / 4 + 8 * i;
      if (key >= keys.last || channel >= channels) continue;
      add_pair(head + static_cast<std::int64_t>(key) * channels + channel, d[n][2 * i],
               d[n][2 * i + 1]);
    }
  }
}

/// A block of kBackwardThreads threads; there are batch · kv_heads · ceil(keys / kKeys).
template <class Element, int kChannels, TileGradients kWhere>
RINGLAB_KERNEL_CODE void backward_portable_block(const BackwardCall<Element>& call) {
  using Tiles = BackwardTiles<kChannels>;
  using Memory = KeyBlockMemory<kChannels>;
  const BlockShape& shape = call.shape;
  const KeyPlace place = key_place<Tiles::kKeys>(shape, block_index());
  const int group = shape.q_heads / shape.kv_heads;
  QueryTiles next{call.mask.tiles, (shape.queries + Tiles::kQueries - 1) / Tiles::kQueries, group,
                  place.keys};
  next.advance();
  if (next.ended()) return;

  const auto fetch = [&](const QueryTiles& at, int step) {
    const std::int64_t head = place.kv_head * group + at.head;
    const int first = at.tile * Tiles::kQueries;
    const KeyRange exists{0, shape.queries};
    copy_tile<Tiles::kQueries, kBackwardThreads>(
        Memory::q(step), head_rows(call.q, head, shape.queries, shape.head_dim), first, exists);
    copy_tile<Tiles::kQueries, kBackwardThreads>(
        Memory::dout(step), head_rows(call.dout, head, shape.queries, shape.v_dim), first, exists);
    commit_copies();
  };
  const int first_key = place.keys.first;
  copy_tile<Tiles::kKeys, kBackwardThreads>(
      Memory::k(), head_rows(call.k, place.kv_head, shape.keys, shape.head_dim), first_key,
      place.keys);
  copy_tile<Tiles::kKeys, kBackwardThreads>(
      Memory::v(), head_rows(call.v, place.kv_head, shape.keys, shape.v_dim), first_key,
      place.keys);
  fetch(next, 0);

  KeyGradients<kChannels> gradients;
  clear(gradients.dk);
  clear(gradients.dv);
  for (int step = 0; !next.ended(); ++step) {
    const QueryTiles at = next;
    next.advance();
    const std::int64_t head = place.kv_head * group + at.head;
    wait_for_copies<0>();
    if (step == 0) clear_not_finite<Element, Tiles::kKeys, kBackwardThreads>(Memory::k());
    if (!at.sees_all()) {
      clear_not_finite<Element, Tiles::kQueries, kBackwardThreads>(Memory::q(step));
      clear_not_finite<Element, Tiles::kQueries, kBackwardThreads>(Memory::dout(step));
    }
    sync_block();  // all of Q and dO are there; nobody reads P, dS or the other stage any more
    if (Tiles::kStages > 1 && !next.ended()) fetch(next, step + 1);

    const BackwardRows rows =
        load_rows(call, head, at.tile * Tiles::kQueries + Tiles::warp_query());
    const MeetingTiles<kChannels> tiles{Memory::q(step), Memory::dout(step), Memory::k(),
                                        Memory::v(), first_key};
    const auto pair = pair_gradients<Element>(tiles, rows, call.scale);
    store_pair<Element>(Memory::p(), pair.p, Tiles::warp_query(), Tiles::warp_key());
    store_pair<Element>(Memory::ds(), pair.ds, Tiles::warp_query(), Tiles::warp_key());
    sync_block();  // all of P and dS are there

    add_key_gradients<Element>(gradients.dv, Memory::p(), Memory::dout(step));
    add_key_gradients<Element>(gradients.dk, Memory::ds(), Memory::q(step));
    if constexpr (kWhere == TileGradients::here) {
      scatter_query_gradients<Element, kChannels>(call, rows, head);
    }
    if (Tiles::kStages == 1) {
      sync_block();  // everybody is done with the only stage
      if (!next.ended()) fetch(next, step + 1);
    }
  }
  leave_key_gradients<kChannels>(gradients.dk,
                                 call.dk + place.kv_head * shape.keys * shape.head_dim,
                                 shape.head_dim, place.keys);
  leave_key_gradients<kChannels>(gradients.dv, call.dv + place.kv_head * shape.keys * shape.v_dim,
                                 shape.v_dim, place.keys);
}

}  // namespace ringlab::cuda
