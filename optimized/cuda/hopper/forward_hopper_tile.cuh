// The forward kernel for Hopper: its shapes, its shared memory, and the order in which it takes tiles.
//
// forward_hopper.cuh explains the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/device_code.h"
#include "optimized/cuda/hopper/tile_order.h"

namespace ringlab::cuda {

// --- sizes -------------------------------------------------------------------------------------

/// The kernel's tactics, one by one, so that the worth of each can be measured
/// (forward_hopper_ladder.h). The defaults are the kernel.
struct HopperTactics {
  bool scores_ahead = true;       ///< S of the next block is issued before P V of this one
  bool takes_turns = true;        ///< consumers take turns in issuing products
  bool knows_full_blocks = true;  ///< blocks that all queries see have no comparisons
  bool waits_late = true;         ///< ptxas is kept from waiting for P V before the softmax
  int slack = 8;                  ///< by which scores may exceed their row_max, in base 2
  int polynomials = 0;            ///< weights of every 8 that are made by multiply-adds
  bool keeps_queries = false;     ///< Q goes to registers when a tile begins
  bool stores_boxes = false;      ///< results leave by way of shared memory, 16 rows at a time
  int cluster = 1;                ///< blocks that copy K and V for each other, a query head each
  bool tells_tiles = false;       ///< a warp of the producer finds out what the next tile is
};

/// The tactics that pay at 128 channels, as measured (docs/gpu.md).
inline constexpr HopperTactics kTacticsAt128{
    .keeps_queries = true, .stores_boxes = true, .tells_tiles = true};

/// A shape of the kernel. Consumers: 2 or 3. Keys: of a block, a multiple of 16.
template <class ElementType, int kPaddedChannels, int kConsumerGroups, int kBlockKeys,
          int kPipelineStages, HopperTactics kHopperTactics = HopperTactics{}>
struct HopperTile {
  using Element = ElementType;
  static constexpr HopperTactics kTactics = kHopperTactics;
  static constexpr int kChannels = kPaddedChannels;
  static constexpr int kConsumers = kConsumerGroups;
  static constexpr int kKeys = kBlockKeys;
  static constexpr int kStages = kPipelineStages;
  static constexpr int kQueries = 64 * kConsumers;
  static constexpr int kCluster = kTactics.cluster;
  static constexpr int kBoxKeys = kKeys / kCluster;  ///< that a block of the cluster copies
  static constexpr int kThreads = 128 * (1 + kConsumers);
  /// With more channels products take longer than the softmax and hide it by themselves.
  static constexpr bool kTakesTurns = kTactics.takes_turns && kChannels <= 128;
  /// The 64 Ki registers of a multiprocessor, in steps of 8 per thread.
  static constexpr bool kBusyProducer = kTactics.tells_tiles || kTactics.cluster > 1;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : kBusyProducer ? 40 : 24;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : kBusyProducer ? 232 : 240;
  static constexpr int kQueryBytes = kQueries * kChannels * 2;
  static constexpr int kBlockBytes = kKeys * kChannels * 2;
  static constexpr int kOutBytes = kTactics.stores_boxes ? kQueryBytes : 0;
  static constexpr int kTickets = kTactics.tells_tiles ? 2 : 0;
  static_assert(kConsumers == 2 || kConsumers == 3);
  static_assert(kChannels % 64 == 0 && kKeys % 16 == 0 && kStages >= 2);
  static_assert(kCluster == 1 || (kBoxKeys % 8 == 0 && kBoxKeys * kCluster == kKeys));
};

/// The message about a tile: its place, and the keys that it and each of its queries see.
template <class Tile>
struct alignas(8) TileTicket {
  KeyRange sees[Tile::kQueries];
  KeyWalk walk;
  TilePlace place;
  bool is_last;  ///< there are no more tiles, and this is none
};

template <class Tile>
struct HopperBarriers {
  Barrier q_full, q_empty;
  Barrier k_full[Tile::kStages], k_empty[Tile::kStages];
  Barrier v_full[Tile::kStages], v_empty[Tile::kStages];
  Barrier told[2], heard[2];  ///< of tickets
};

/// The kernel's parameters. `call.scale` > 0: the largest score has the largest weight.
template <class Element>
struct HopperParams {
  ForwardCall<Element> call;
  TensorMap q, k, v;  ///< boxes of kQueries rows, and of kBoxKeys rows
  TensorMap out;      ///< boxes of 16 rows, where results leave in boxes
  TileOrder order;    ///< of the query heads of a cluster together, where there are clusters
};

/// The layout of shared memory.
template <class Tile>
struct HopperShared {
  static constexpr int kOutPlace = Tile::kQueryBytes + 2 * Tile::kStages * Tile::kBlockBytes;
  static constexpr int kTicketsPlace = kOutPlace + Tile::kOutBytes;
  static constexpr int kBarriersPlace =
      kTicketsPlace + Tile::kTickets * static_cast<int>(sizeof(TileTicket<Tile>));
  std::byte* q;
  HopperBarriers<Tile>* barriers;

  RINGLAB_KERNEL_CODE std::byte* k(int stage) const {
    return q + Tile::kQueryBytes + stage * Tile::kBlockBytes;
  }
  RINGLAB_KERNEL_CODE std::byte* v(int stage) const { return k(Tile::kStages + stage); }
  /// The 16 rows of a consumer warp, as boxes of 64 channels.
  RINGLAB_KERNEL_CODE std::byte* out(int warp) const {
    return q + kOutPlace + warp * 16 * Tile::kChannels * 2;
  }
  RINGLAB_KERNEL_CODE TileTicket<Tile>& ticket(int stage) const {
    return reinterpret_cast<TileTicket<Tile>*>(q + kTicketsPlace)[stage];
  }
};

template <class Tile>
inline constexpr int kHopperSharedBytes = HopperShared<Tile>::kBarriersPlace +
                                          static_cast<int>(sizeof(HopperBarriers<Tile>));

template <class Tile>
RINGLAB_KERNEL_CODE HopperShared<Tile> lay_out_shared() {
  std::byte* const start = shared_memory();
  std::byte* const barriers = start + HopperShared<Tile>::kBarriersPlace;
  return {start, reinterpret_cast<HopperBarriers<Tile>*>(barriers)};
}

/// Initialises the barriers. Called by one thread. A buffer is full after one announcement and its
/// bytes, empty after an arrival of each consumer warp.
template <class Tile>
RINGLAB_KERNEL_CODE void init_hopper_barriers(HopperBarriers<Tile>* barriers) {
  constexpr int kWarps = 4 * Tile::kConsumers;
  init_barrier(&barriers->q_full, 1);
  init_barrier(&barriers->q_empty, kWarps);
  for (int stage = 0; stage < Tile::kStages; ++stage) {
    init_barrier(&barriers->k_full[stage], 1);
    init_barrier(&barriers->v_full[stage], 1);
    init_barrier(&barriers->k_empty[stage], kWarps * Tile::kCluster);
    init_barrier(&barriers->v_empty[stage], kWarps * Tile::kCluster);
  }
  for (int stage = 0; stage < 2; ++stage) {
    init_barrier(&barriers->told[stage], 32);
    init_barrier(&barriers->heard[stage], kWarps + 1);  // and the producer's thread
  }
  publish_barriers();
}

/// Calls work(place, walk) for every tile of this thread block. Producer and consumers go through
/// the same tiles and the same blocks of keys, so that their barriers keep in step.
template <class Tile, class Work>
RINGLAB_KERNEL_CODE void for_each_tile(const HopperParams<typename Tile::Element>& params,
                                       Work&& work) {
  const std::int64_t count = tile_count(params.order);
  const int cluster = block_index() / Tile::kCluster, clusters = block_count() / Tile::kCluster;
  for (int round = 0; std::int64_t{round} * clusters < count; ++round) {
    const std::int64_t turn = turn_of(cluster, clusters, round);
    if (turn >= count) continue;
    TilePlace place = tile_at(params.order, static_cast<std::int32_t>(turn));
    if constexpr (Tile::kCluster > 1) place.head = place.head * Tile::kCluster + cluster_rank();
    const TileKeys keys = params.call.mask.tiles[place.tile];
    work(place, walk_of(keys.any, keys.all, Tile::kKeys));
  }
}

/// The warp that tells the other warps their tiles, one or two tiles ahead of them. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE void tell_tiles(const HopperParams<typename Tile::Element>& params,
                                    HopperShared<Tile> shared) {
  const int lane = thread_index() % 32;
  PipelinePlace<2> told = {};
  const auto tell = [&](TilePlace place, KeyWalk walk, bool is_last) {
    wait(&shared.barriers->heard[told.stage], told.parity ^ 1, "heard");
    TileTicket<Tile>& ticket = shared.ticket(told.stage);
    // Starts all loads at once: nothing begins before the first tile is told.
    KeyRange sees[Tile::kQueries / 32];
    RINGLAB_UNROLL
    for (int n = 0; n < Tile::kQueries / 32; ++n) {
      const int query = place.tile * Tile::kQueries + 32 * n + lane;
      if (query < params.call.shape.queries) sees[n] = params.call.mask.rows[query];
    }
    RINGLAB_UNROLL
    for (int n = 0; n < Tile::kQueries / 32; ++n) ticket.sees[32 * n + lane] = sees[n];
    if (lane == 0) {
      ticket.walk = walk;
      ticket.place = place;
      ticket.is_last = is_last;
    }
    arrive(&shared.barriers->told[told.stage]);
    told.advance();
  };
  for_each_tile<Tile>(params, [&](TilePlace place, KeyWalk walk) { tell(place, walk, false); });
  tell({}, {}, true);
}

/// Calls work(place, walk, keys that each query sees) for every tile of this thread block, which it
/// is told or finds out itself. Called by all lanes of a warp, or, `is_alone`, by one thread.
template <class Tile, class Work>
RINGLAB_KERNEL_CODE void take_tiles(const HopperParams<typename Tile::Element>& params,
                                    HopperShared<Tile> shared, bool is_alone, Work&& work) {
  if constexpr (Tile::kTickets == 0) {
    for_each_tile<Tile>(params, [&](TilePlace place, KeyWalk walk) {
      work(place, walk, params.call.mask.rows + place.tile * Tile::kQueries);
    });
  } else {
    for (PipelinePlace<2> told = {};; told.advance()) {
      wait(&shared.barriers->told[told.stage], told.parity, "told");
      const TileTicket<Tile>& ticket = shared.ticket(told.stage);
      if (ticket.is_last) return;
      work(ticket.place, ticket.walk, ticket.sees);
      if (!is_alone) sync_warp();  // all lanes have read it
      if (is_alone || thread_index() % 32 == 0) arrive(&shared.barriers->heard[told.stage]);
    }
  }
}

}  // namespace ringlab::cuda
