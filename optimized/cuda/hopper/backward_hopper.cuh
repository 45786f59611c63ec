// The backward pass on Hopper (sm_90a), by keys: one producer, two consumers with 64 keys each.
//
// Algorithm 2 of FlashAttention-2 (Dao 2023) with warpgroups that have one task each, as in
// FlashAttention-3 (Shah et al. 2024). A thread block keeps 128 keys of one K/V head in shared
// memory and their dK and dV in registers. The tiles of queries that see some of these keys
// (query_walk.h), of all query heads that read this K/V head, pass by.
//
// Legend      S = Q Kᵀ, P = 2^(scale S - lse), dP = dO Vᵀ, dS = P (dP - delta)
//             dV = Pᵀ dO, dK = dSᵀ Q, dQ = dS K
//   C         channels, head_dim and v_dim padded to 64 or 128; the tensor maps pad with zeros
//   tile      kQueries queries of one head, what a stage of the pipeline holds of Q and of dO
//   t, g, i   lane t of the 4 that share row g of 8, and row g + 8; i says which of the two
//
// Everything is transposed: a consumer computes Sᵀ = K Qᵀ and dPᵀ = V dOᵀ, (64 keys, kQueries). The
// registers that hold Pᵀ and dSᵀ are then in the very order in which wgmma takes a left operand, so
// dV and dK need nothing from shared memory but dO and Q. Only dQ adds up over the keys of both
// consumers: dSᵀ goes through shared memory, and each consumer computes a piece of 64 queries by 64
// channels of dS K from all 128 keys.
//
// Shared memory (128-byte rows, swizzled: device_code.h), here for C = 128, kQueries = 64, 162 KiB:
//
//   K, V         32 KiB each, of the whole run     [ channels 0-63: 128 rows ][ 64-127 ]
//   Q   stage 0, 1   16 KiB each                   [ channels 0-63: 64 rows ][ 64-127 ]
//   dO  stage 0, 1   16 KiB each                   [ channels 0-63: 64 rows ][ 64-127 ]
//   dSᵀ stage 0, 1   16 KiB each                   [ queries 0-63: 128 rows ]
//   rows stage 0, 1  lse, delta and the interval of keys of each query, and which tile it is
//   barriers         "full" for K and V together; "full" and "empty" for each stage
//
// Who waits for whom:
//
//   full[stage]    all 128 threads of the producer have written their rows and all bytes of Q and
//                  dO have arrived. The thread that copies announces them as it arrives.
//   empty[stage]   every warp of the consumers is done with the stage: its last product that reads
//                  it, dSᵀ Q, has ended, and so have all earlier ones.
//   ds_full[stage] every warp of the consumers has written its dSᵀ of the tile. No "empty" keeps a
//                  fast consumer from overwriting dSᵀ that a slow one still multiplies, because
//                  there are two stages: who writes dSᵀ of tile n + 2 has seen "full" of tile
//                  n + 1, before which the other one had waited for its product dS K of tile n.
//   named 1        both consumers: K, once, and tiles that are seen in part have lost what is not
//                  finite.
//
// dSᵀ is written by stmatrix, which is an ordinary store, and read by the tensor cores, that is by
// another proxy: every thread that wrote fences before its warp says so at the barrier.
//
// Time in a consumer at tile n:
//
//   tensor cores   S      dV, dQ of tile n - 1   dP                      dK
//   other units      P ►                           dQ to memory, dS, store ►
//
// A consumer wants the other one's dSᵀ of tile n - 1 only after its own weights of tile n: the two
// need not keep in step, and one's products run under the other's exponentials.
//
// dQ is added to memory by way of shared memory in boxes of 16 rows, in whatever order thread blocks
// come by; where the bits are to be the same from run to run, another kernel makes dQ
// (HopperQueryGradients). Versions for comparison (backward_hopper_ladder.h) add it by red.add, two
// channels at once (HopperAdding), or multiply dQ with its own tile (meet_tile): the consumers meet
// at every tile, once dSᵀ is there.
//
// NaN and infinity: as in backward_tiles.cuh, a gradient is changed by pairs that see each other
// and no others. P is chosen by the mask, and dS is 0 where P is, whatever dP holds. Right operands
// whose rows are not all seen lose NaN and infinity before they are multiplied: K once, Q and dO
// in tiles that meet the keys partially. A delta that is not finite makes the row's lse NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/hopper/descriptor.h"
#include "optimized/cuda/hopper/query_walk.h"
#include "optimized/cuda/hopper/tile_order.h"
#include "optimized/cuda/hopper/warp_boxes.cuh"
#include "optimized/cuda/portable/backward_tiles.cuh"
#include "optimized/cuda/uniform.cuh"

namespace ringlab::cuda {

// --- sizes -------------------------------------------------------------------------------------

/// The way in which a piece of dQ is added to memory: by atomic additions of two numbers, or from
/// shared memory, in boxes of 16 rows by 32 channels.
enum class HopperAdding { pairs, boxes };

/// A shape of the kernel: 64 channels and tiles of 128 queries, or 128 and 64. The pieces of dQ, 64
/// queries by 64 channels, are as many as the consumers in both.
template <class ElementType, int kPaddedChannels, HopperAdding kHowToAdd = HopperAdding::boxes,
          bool kOneTileLater = true>
struct HopperBackwardTile {
  using Element = ElementType;
  static constexpr HopperAdding kAdding = kHowToAdd;
  /// dQ of a tile is multiplied during the next tile: consumers need not keep in step.
  static constexpr bool kLater = kOneTileLater;
  static constexpr int kChannels = kPaddedChannels;
  static constexpr int kConsumers = 2;
  static constexpr int kKeys = 64 * kConsumers;
  static constexpr int kQueries = 64 * 128 / kChannels;
  static constexpr int kMaskQueries = BackwardTiles<kChannels>::kQueries;
  static constexpr int kStages = 2;
  /// lse and delta are read while earlier products run: registers suffice for 64 queries.
  static constexpr bool kReadsEarly = kQueries == 64;
  static constexpr int kConsumerThreads = 128 * kConsumers;
  static constexpr int kThreads = 128 + kConsumerThreads;
  static constexpr int kProducerRegisters = 24;
  static constexpr int kConsumerRegisters = 240;
  static constexpr int kKeyBytes = kKeys * kChannels * 2;
  static constexpr int kQueryBytes = kQueries * kChannels * 2;
  static constexpr int kDsBytes = kKeys * kQueries * 2;
  static constexpr int kDqBytes = kAdding == HopperAdding::boxes ? kConsumers * 64 * 64 * 4 : 0;
  static_assert(kChannels == 64 || kChannels == 128);
  static_assert(kAdding == HopperAdding::boxes || !kLater);
  static_assert(kQueries / 64 * (kChannels / 64) == kConsumers);
  static_assert(kQueries % kMaskQueries == 0 && kQueries <= 128);
};

/// The place of a tile.
struct QueryPlace {
  std::int32_t head;  ///< of all batches, numbered through
  std::int32_t first_query;
};

/// Facts of a tile that consumers need besides Q and dO.
template <int kQueries>
struct alignas(8) QueryRows {
  float lse[kQueries];  ///< in base 2; +inf: all weights are 0; NaN: none is a number
  float delta[kQueries];
  KeyRange sees[kQueries];
  QueryPlace place;
  TileMeeting meeting;  ///< none: there are no more tiles
};

template <class Tile>
struct HopperBackwardBarriers {
  Barrier keys_full;
  Barrier full[Tile::kStages], empty[Tile::kStages];
  Barrier ds_full[Tile::kStages];
};

/// The layout of shared memory.
template <class Tile>
struct HopperBackwardShared {
  using Rows = QueryRows<Tile::kQueries>;
  static constexpr int kQPlace = 2 * Tile::kKeyBytes;
  static constexpr int kDsPlace = kQPlace + 2 * Tile::kStages * Tile::kQueryBytes;
  static constexpr int kDqPlace = kDsPlace + Tile::kStages * Tile::kDsBytes;
  static constexpr int kRowsPlace = kDqPlace + Tile::kDqBytes;
  static constexpr int kBarriersPlace = kRowsPlace + Tile::kStages * static_cast<int>(sizeof(Rows));
  static constexpr int kBytes =
      kBarriersPlace + static_cast<int>(sizeof(HopperBackwardBarriers<Tile>));
  std::byte* start;

  RINGLAB_KERNEL_CODE std::byte* k() const { return start; }
  RINGLAB_KERNEL_CODE std::byte* v() const { return start + Tile::kKeyBytes; }
  RINGLAB_KERNEL_CODE std::byte* q(int stage) const {
    return start + kQPlace + stage * Tile::kQueryBytes;
  }
  RINGLAB_KERNEL_CODE std::byte* dout(int stage) const { return q(Tile::kStages + stage); }
  RINGLAB_KERNEL_CODE std::byte* ds(int stage) const {
    return start + kDsPlace + stage * Tile::kDsBytes;
  }
  /// The part of dQ that a consumer warp adds: two boxes.
  RINGLAB_KERNEL_CODE std::byte* dq(int warp) const {
    return start + kDqPlace + warp * 2 * kWarpBoxBytes;
  }
  RINGLAB_KERNEL_CODE Rows& rows(int stage) const {
    return reinterpret_cast<Rows*>(start + kRowsPlace)[stage];
  }
  RINGLAB_KERNEL_CODE HopperBackwardBarriers<Tile>& barriers() const {
    return *reinterpret_cast<HopperBackwardBarriers<Tile>*>(start + kBarriersPlace);
  }
};

/// The kernel's parameters.
template <class Element>
struct HopperBackwardParams {
  BackwardCall<Element> call;
  TensorMap q, dout;  ///< boxes of kQueries rows
  TensorMap k, v;     ///< boxes of kKeys rows
  TensorMap dq;       ///< boxes of 16 rows, where dQ is added in boxes
  BackwardOrder order;
};

/// The kernel that makes dQ: this one, by additions in any order, or another one.
enum class HopperQueryGradients { here, elsewhere };

/// Initialises the barriers. Called by one thread.
template <class Tile>
RINGLAB_KERNEL_CODE void init_backward_barriers(HopperBackwardBarriers<Tile>& barriers) {
  init_barrier(&barriers.keys_full, 1);
  for (int stage = 0; stage < Tile::kStages; ++stage) {
    init_barrier(&barriers.full[stage], 128);
    init_barrier(&barriers.empty[stage], Tile::kConsumerThreads / 32);
    init_barrier(&barriers.ds_full[stage], Tile::kConsumerThreads / 32);
  }
  publish_barriers();
}

/// The tiles from the first that meets the keys to the last, by all lanes of a warp: 32 tiles at a
/// time, where one thread would wait for memory tile by tile.
RINGLAB_KERNEL_CODE TileSpan span_of(const QueryWalk& walk) {
  std::uint32_t first = static_cast<std::uint32_t>(walk.tiles()), last = 0;
  for (std::int32_t tile = lane_index(); tile < walk.tiles(); tile += kWarpLanes) {
    if (walk.meeting_of(tile) == TileMeeting::none) continue;
    if (last == 0) first = static_cast<std::uint32_t>(tile);
    last = static_cast<std::uint32_t>(tile) + 1;
  }
  RINGLAB_UNROLL
  for (int mask = 1; mask < kWarpLanes; mask *= 2) {
    const std::uint32_t other_first = shuffle(first, lane_index() ^ mask);
    const std::uint32_t other_last = shuffle(last, lane_index() ^ mask);
    first = other_first < first ? other_first : first;
    last = other_last > last ? other_last : last;
  }
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)};
}

// --- the producer ------------------------------------------------------------------------------

/// All channels of kRows rows from `row` on: one box for every 64 channels.
template <int kRows, int kChannels>
RINGLAB_KERNEL_CODE void load_boxes(std::byte* to, const TensorMap* map, Barrier* full, int head,
                                    int row) {
  for (int channel = 0; channel < kChannels; channel += 64) {
    load_box(to + kRows * 2 * channel, map, full, head, row, channel);
  }
}

/// A producer thread's view of its query.
struct ProducedRow {
  float lse = -kEmptyRowMax<float>;
  float delta = 0;
  KeyRange sees = {};
};
template <class Element>
RINGLAB_KERNEL_CODE ProducedRow read_row(const BackwardCall<Element>& call, std::int64_t head,
                                         std::int32_t query) {
  ProducedRow row;
  if (query >= call.shape.queries) return row;
  const std::int64_t number = head * call.shape.queries + query;
  const float lse = call.lse[number];
  row.delta = call.delta[number];
  row.sees = call.mask.rows[query];
  if (lse != kEmptyRowMax<float>) row.lse = lse * kLog2e;
  row.lse += row.delta - row.delta;  // NaN where delta is not finite: dO may have been the reason
  return row;
}

/// The producer, a warpgroup: one thread copies, each brings lse, delta and interval of a query.
template <class Tile>
struct BackwardProducer {
  const HopperBackwardParams<typename Tile::Element>& params;
  HopperBackwardShared<Tile> shared;
  PipelinePlace<Tile::kStages> place = {};

  RINGLAB_KERNEL_CODE void load_keys(BlockKeys block) const {
    if (thread_index() != 0) return;
    Barrier* const full = &shared.barriers().keys_full;
    arrive_expecting(full, 2 * Tile::kKeyBytes);
    load_boxes<Tile::kKeys, Tile::kChannels>(shared.k(), &params.k, full, block.kv_head,
                                             block.first_key);
    load_boxes<Tile::kKeys, Tile::kChannels>(shared.v(), &params.v, full, block.kv_head,
                                             block.first_key);
  }

  /// Sends the tile, or if `meeting` is none the news that there are no more.
  RINGLAB_KERNEL_CODE void send(std::int32_t head, std::int32_t first_query, TileMeeting meeting) {
    const int thread = thread_index(), stage = place.stage;
    const bool is_tile = meeting != TileMeeting::none;
    ProducedRow row;
    if (is_tile && thread < Tile::kQueries) row = read_row(params.call, head, first_query + thread);
    wait(&shared.barriers().empty[stage], place.parity ^ 1, "Q empty");
    QueryRows<Tile::kQueries>& rows = shared.rows(stage);
    if (thread < Tile::kQueries) {
      rows.lse[thread] = row.lse;
      rows.delta[thread] = row.delta;
      rows.sees[thread] = row.sees;
    }
    Barrier* const full = &shared.barriers().full[stage];
    if (thread == 0) {
      rows.place = {head, first_query};
      rows.meeting = meeting;
    }
    if (thread == 0 && is_tile) {
      arrive_expecting(full, 2 * Tile::kQueryBytes);
      load_boxes<Tile::kQueries, Tile::kChannels>(shared.q(stage), &params.q, full, head,
                                                  first_query);
      load_boxes<Tile::kQueries, Tile::kChannels>(shared.dout(stage), &params.dout, full, head,
                                                  first_query);
    } else {
      arrive(full);
    }
    place.advance();
  }
};

/// The walk over the keys of a block, over its query heads; all lanes of a warp.
template <class Tile>
RINGLAB_KERNEL_CODE QueryWalk begin_walk(const HopperBackwardParams<typename Tile::Element>& params,
                                         BlockKeys block) {
  const BackwardCall<typename Tile::Element>& call = params.call;
  QueryWalk walk{.mask_tiles = call.mask.tiles,
                 .mask_queries = Tile::kMaskQueries,
                 .parts = Tile::kQueries / Tile::kMaskQueries,
                 .queries = call.shape.queries,
                 .heads = params.order.block_heads,
                 .first_key = block.first_key,
                 .block_keys = Tile::kKeys,
                 .span = {}};
  walk.span = span_of(walk);
  return walk;
}

/// Loads the keys of the block, if some query sees one, and then the tiles that see some.
template <class Tile>
RINGLAB_KERNEL_CODE void produce_queries(const HopperBackwardParams<typename Tile::Element>& params,
                                         HopperBackwardShared<Tile> shared, BlockKeys block) {
  BackwardProducer<Tile> producer{params, shared};
  QueryWalk walk = begin_walk<Tile>(params, block);
  if (walk.span.first < walk.span.last) producer.load_keys(block);
  while (walk.advance()) {
    producer.send(block.first_head + walk.head, walk.first_query(), walk.meeting);
  }
  producer.send(0, 0, TileMeeting::none);
}

// --- a consumer: registers ---------------------------------------------------------------------

/// A thread's part of dK and dV: keys g and g + 8 of its warp's 16, channels 8 n + 2 t and the next
/// one; [4 n + 2 i + (0 or 1)].
template <class Tile>
struct KeySums {
  float dk[Tile::kChannels / 2];
  float dv[Tile::kChannels / 2];
};

/// A thread's part of a tile: the same keys, with the queries 8 n + 2 t and the next one.
template <class Tile>
struct PairParts {
  float p[Tile::kQueries / 2];   ///< scores, then weights
  float ds[Tile::kQueries / 2];  ///< dP, then dS
  std::uint32_t rounded_p[Tile::kQueries / 16][4];
  std::uint32_t rounded_ds[Tile::kQueries / 16][4];
};

/// Calls act(query of the tile, index) for the first of every two values of a thread's row i.
template <class Tile, class Act>
RINGLAB_KERNEL_CODE void for_query_pairs(Act&& act) {
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kQueries / 8; ++n) act(8 * n + 2 * (lane_index() % 4), 4 * n);
}

/// A number of each query of a thread's pairs.
template <class Tile>
struct OfQueries {
  FloatPair pairs[Tile::kQueries / 8];
};
template <class Tile>
RINGLAB_KERNEL_CODE OfQueries<Tile> read_queries(const float (&numbers)[Tile::kQueries]) {
  OfQueries<Tile> mine;
  for_query_pairs<Tile>([&](int query, int at) {
    mine.pairs[at / 4] = *reinterpret_cast<const FloatPair*>(numbers + query);
  });
  return mine;
}

/// Waits for the products of d, all but the last kPending groups, and reads a number of each query:
/// while the products run where there are registers.
template <int kPending, class Tile>
RINGLAB_KERNEL_CODE OfQueries<Tile> read_under_products(float (&d)[Tile::kQueries / 2],
                                                        const float (&numbers)[Tile::kQueries]) {
  OfQueries<Tile> mine;
  if constexpr (Tile::kReadsEarly) mine = read_queries<Tile>(numbers);
  products_wait<kPending>();
  hold(d);
  if constexpr (!Tile::kReadsEarly) mine = read_queries<Tile>(numbers);
  return mine;
}

/// Turns scores into weights: 2^(scale S - lse), and 0 for pairs that do not see each other.
template <TileMeeting kMeeting, class Tile>
RINGLAB_KERNEL_CODE void weigh_pairs(PairParts<Tile>& parts, const OfQueries<Tile>& lses,
                                     const QueryRows<Tile::kQueries>& rows, float scale,
                                     int first_key) {
  for_query_pairs<Tile>([&](int query, int at) {
    const FloatPair lse = lses.pairs[at / 4];
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      float& low = parts.p[at + 2 * i];
      float& high = parts.p[at + 2 * i + 1];
      low = exp2_approx(fmaf(low, scale, -lse.low));
      high = exp2_approx(fmaf(high, scale, -lse.high));
      if constexpr (kMeeting == TileMeeting::partial) {
        if (!contains(rows.sees[query], first_key + 8 * i)) low = 0;
        if (!contains(rows.sees[query + 1], first_key + 8 * i)) high = 0;
      }
    }
  });
}

/// Turns dP into dS.
template <TileMeeting kMeeting, class Tile>
RINGLAB_KERNEL_CODE void differentiate_pairs(PairParts<Tile>& parts,
                                             const OfQueries<Tile>& deltas) {
  for_query_pairs<Tile>([&](int, int at) {
    const FloatPair delta = deltas.pairs[at / 4];
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float p = parts.p[at + i];
      const float ds = p * (parts.ds[at + i] - (i % 2 == 0 ? delta.low : delta.high));
      parts.ds[at + i] = kMeeting == TileMeeting::partial && p == 0 ? 0 : ds;
    }
  });
}

/// Rounds to the fragments of a left operand: for 16 queries, keys g and g + 8 of queries 2 t, 2 t
/// + 1, then of queries 2 t + 8, 2 t + 9. Accumulators of two neighbouring n are in that very
/// order.
template <class Element, int kCount>
RINGLAB_KERNEL_CODE void round_pairs(std::uint32_t (&rounded)[kCount][4],
                                     const float (&values)[8 * kCount]) {
  RINGLAB_UNROLL
  for (int step = 0; step < kCount; ++step) {
    RINGLAB_UNROLL
    for (int part = 0; part < 4; ++part) {
      const int at = 8 * step + 2 * part;
      rounded[step][part] = pack<Element>(values[at], values[at + 1]);
    }
  }
}

// --- a consumer: shared memory -----------------------------------------------------------------

/// Sets NaN and infinities in kBytes bytes to zero; called by all consumers.
template <class Tile, int kBytes>
RINGLAB_KERNEL_CODE void clear_not_finite_in(std::byte* operand) {
  constexpr std::uint32_t kTop = Tile::Element::Format::top_exponent;
  static_assert(kBytes % (16 * Tile::kConsumerThreads) == 0);
  RINGLAB_UNROLL
  for (int step = 0; step < kBytes / 16 / Tile::kConsumerThreads; ++step) {
    auto* unit =
        reinterpret_cast<Unit*>(operand) + step * Tile::kConsumerThreads + (thread_index() - 128);
    Unit finite = *unit;
    bool found = false;
    RINGLAB_UNROLL
    for (std::uint32_t& word : finite.words) {
      const std::uint32_t before = word;
      if ((word & kTop) == kTop) word &= 0xffff0000u;
      if ((word >> 16 & kTop) == kTop) word &= 0x0000ffffu;
      found |= word != before;
    }
    if (found) *unit = finite;
  }
}

/// Makes writes of consumers to shared memory visible to the products of all consumers.
template <class Tile>
RINGLAB_KERNEL_CODE void share_with_consumers() {
  fence_async_proxy();
  sync_threads(1, Tile::kConsumerThreads);
}

/// Sets NaN and infinities in Q and dO to zero; called by all consumers.
template <class Tile>
RINGLAB_KERNEL_CODE void clear_not_finite(std::byte* q, std::byte* dout) {
  clear_not_finite_in<Tile, Tile::kQueryBytes>(q);
  clear_not_finite_in<Tile, Tile::kQueryBytes>(dout);
  share_with_consumers<Tile>();
}

/// Stores dSᵀ (keys, queries) in boxes of 64 queries; `of_warp`: the first of the warp's 16 rows.
/// All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE void store_ds(std::byte* of_warp, const PairParts<Tile>& parts) {
  RINGLAB_UNROLL
  for (int query = 0; query < Tile::kQueries; query += 16) {
    store_matrices(of_warp + query / kBoxChannels * Tile::kKeys * 128 + fragment_place(query),
                   parts.rounded_ds[query / 16]);
  }
}

// --- a consumer: products ----------------------------------------------------------------------

template <class Tile>
struct BackwardConsumer {
  using Element = typename Tile::Element;
  const HopperBackwardParams<Element>& params;
  HopperBackwardShared<Tile> shared;
  int number;  ///< among the consumers
  PipelinePlace<Tile::kStages> place = {};
  QueryPlace before = {-1, 0};  ///< the tile whose dQ is still to be multiplied; head -1: none

  /// The number of this thread's first row among the keys of the block.
  RINGLAB_KERNEL_CODE int key() const {
    return 64 * number + warp_index() % 4 * 16 + lane_index() / 4;
  }
  RINGLAB_KERNEL_CODE const QueryRows<Tile::kQueries>& rows() const {
    return shared.rows(place.stage);
  }

  /// d = A Bᵀ over all channels: A this consumer's keys of `keys`, B `queries`.
  RINGLAB_KERNEL_CODE void issue_rows(float (&d)[Tile::kQueries / 2], const std::byte* keys,
                                      const std::byte* queries) const {
    products_begin();
    RINGLAB_UNROLL
    for (int channel = 0; channel < Tile::kChannels; channel += 16) {
      multiply_rows<Element, Tile::kQueries>(d, {keys + number * 64 * 128, Tile::kKeys},
                                             {queries, Tile::kQueries}, channel, channel > 0);
    }
    products_commit();
  }

  /// d += A B over the queries of the tile: A in registers, B dO or Q.
  RINGLAB_KERNEL_CODE void issue_sums(float (&d)[Tile::kChannels / 2],
                                      const std::uint32_t (&a)[Tile::kQueries / 16][4],
                                      const std::byte* b) const {
    products_begin();
    RINGLAB_UNROLL
    for (int step = 0; step < Tile::kQueries / 16; ++step) {
      multiply_weights<Element, Tile::kChannels>(d, a[step], {b, Tile::kQueries}, 16 * step);
    }
    products_commit();
  }

  // The place of this consumer's piece of dQ.
  RINGLAB_KERNEL_CODE int piece_query() const { return number % (Tile::kQueries / 64) * 64; }
  RINGLAB_KERNEL_CODE int piece_channel() const { return number / (Tile::kQueries / 64) * 64; }

  /// dq = dS K over all keys of the block.
  RINGLAB_KERNEL_CODE void issue_dq(float (&dq)[32], const std::byte* ds) const {
    const Operand left{ds + piece_query() * Tile::kKeys * 2, Tile::kKeys};
    const Operand k{shared.k() + piece_channel() * Tile::kKeys * 2, Tile::kKeys};
    products_begin();
    RINGLAB_UNROLL
    for (int step = 0; step < Tile::kKeys; step += 16) {
      multiply_columns<Element, 64>(dq, left, k, step, step > 0);
    }
    products_commit();
  }

  RINGLAB_KERNEL_CODE void wait_for_tile() const {
    wait(&shared.barriers().full[place.stage], place.parity, "Q full");
  }
  RINGLAB_KERNEL_CODE void release_tile() {
    if (lane_index() == 0) arrive(&shared.barriers().empty[place.stage]);
    place.advance();
  }
  /// Tells the consumers that this warp's dS of the tile is in shared memory. All lanes.
  RINGLAB_KERNEL_CODE void tell_ds() const {
    fence_async_proxy();
    sync_warp();
    if (lane_index() == 0) arrive(&shared.barriers().ds_full[place.stage]);
  }
};

/// Adds dQ of a piece to memory.
template <class Tile>
RINGLAB_KERNEL_CODE void add_dq(const BackwardConsumer<Tile>& consumer, QueryPlace place,
                                const float (&dq)[32]) {
  const auto& call = consumer.params.call;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int query = place.first_query + consumer.piece_query() + warp_index() % 4 * 16 +
                      lane_index() / 4 + 8 * i;
    if (query >= call.shape.queries) continue;
    const std::int64_t number = std::int64_t{place.head} * call.shape.queries + query;
    const int first = consumer.piece_channel() + 2 * (lane_index() % 4);
    float* const to = call.dq + number * call.shape.head_dim + first;
    const auto add = [&](int n) {
      atomic_add_pair(to + 8 * n, dq[4 * n + 2 * i], dq[4 * n + 2 * i + 1]);
    };
    if (consumer.piece_channel() + 64 <= call.shape.head_dim) {  // once instead of eight times
      RINGLAB_UNROLL
      for (int n = 0; n < 8; ++n) add(n);
    } else {
      RINGLAB_UNROLL
      for (int n = 0; n < 8; ++n) {
        if (first + 8 * n < call.shape.head_dim) add(n);
      }
    }
  }
}

/// Adds dQ of a piece to memory by way of shared memory: 16 rows by this warp. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE void add_dq_boxes(const BackwardConsumer<Tile>& consumer, QueryPlace place,
                                      const float (&dq)[32]) {
  std::byte* const boxes = consumer.shared.dq(warp_index() - 4);
  const bool leads = lane_index() == 0;
  if (leads) wait_for_boxes<0>();  // the tile before is out of this memory
  sync_warp();
  // Half a warp, four rows, stores at once. Odd rows store the pieces n and n ^ 2 the other way round,
  // so that the four go to different banks.
  const bool is_odd = lane_index() / 4 % 2 == 1;
  const int turned = is_odd ? 2 : 0;
  RINGLAB_UNROLL
  for (int n = 0; n < 8; ++n) {
    const int first = (n % 4 ^ turned) * 32 + lane_index() % 4 * 8;  // bytes in the row of a box
    std::byte* const to = boxes + n / 4 * kWarpBoxBytes +
                          swizzle_128(static_cast<std::uint32_t>(lane_index() / 4 * 128 + first));
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int at = 4 * n + 2 * i, other = 4 * (n ^ 2) + 2 * i;
      *reinterpret_cast<FloatPair*>(to + 8 * i * 128) = {is_odd ? dq[other] : dq[at],
                                                         is_odd ? dq[other + 1] : dq[at + 1]};
    }
  }
  fence_async_proxy();
  sync_warp();
  if (!leads) return;
  const int row = place.first_query + consumer.piece_query() + warp_index() % 4 * kWarpRows;
  for (int box = 0; box < 2; ++box) {
    const int channel = consumer.piece_channel() + 32 * box;
    if (channel >= consumer.params.call.shape.head_dim) continue;
    add_box(&consumer.params.dq, boxes + box * kWarpBoxBytes, place.head, row, channel);
  }
  commit_boxes();
}

/// Makes dQ of the tile before, once the dS of both consumers is there. Calls issue() when all
/// products are done, to issue others: dQ goes to memory while they run.
template <class Tile, class Issue>
RINGLAB_KERNEL_CODE void add_dq_of_tile_before(BackwardConsumer<Tile>& consumer, Issue&& issue) {
  if (consumer.before.head < 0) {
    products_wait<0>();
    return issue();
  }
  const PipelinePlace<Tile::kStages> place = consumer.place.before();
  wait(&consumer.shared.barriers().ds_full[place.stage], place.parity, "dS full");
  float dq[32];
  consumer.issue_dq(dq, consumer.shared.ds(place.stage));
  products_wait<0>();
  hold(dq);
  issue();
  add_dq_boxes(consumer, consumer.before, dq);
}

/// Adds one tile of queries to dK and dV, and dQ of the tile before to memory.
template <TileMeeting kMeeting, class Tile>
RINGLAB_KERNEL_CODE void meet_tile_later(BackwardConsumer<Tile>& consumer, KeySums<Tile>& sums,
                                         int first_key) {
  const auto& shared = consumer.shared;
  const auto& rows = consumer.rows();
  const int stage = consumer.place.stage;
  std::byte* const q = shared.q(stage);
  std::byte* const dout = shared.dout(stage);
  if constexpr (kMeeting == TileMeeting::partial) clear_not_finite<Tile>(q, dout);
  PairParts<Tile> parts;
  consumer.issue_rows(parts.p, shared.k(), q);
  const auto lses = read_under_products<0, Tile>(parts.p, rows.lse);
  weigh_pairs<kMeeting>(parts, lses, rows, consumer.params.call.scale, first_key + consumer.key());
  round_pairs<typename Tile::Element>(parts.rounded_p, parts.p);
  consumer.issue_sums(sums.dv, parts.rounded_p, dout);
  add_dq_of_tile_before(consumer, [&] {
    hold(sums.dv);
    consumer.issue_rows(parts.ds, shared.v(), dout);
  });
  const auto deltas = read_under_products<0, Tile>(parts.ds, rows.delta);
  differentiate_pairs<kMeeting>(parts, deltas);
  round_pairs<typename Tile::Element>(parts.rounded_ds, parts.ds);
  store_ds(shared.ds(stage) + (warp_index() - 4) * kWarpBoxBytes, parts);
  consumer.tell_ds();
  consumer.issue_sums(sums.dk, parts.rounded_ds, q);
  consumer.before = rows.place;
  products_wait<0>();
  hold(sums.dk);
  consumer.release_tile();
}

/// Adds one tile of queries to all gradients.
template <TileMeeting kMeeting, HopperQueryGradients kWhere, class Tile>
RINGLAB_KERNEL_CODE void meet_tile(BackwardConsumer<Tile>& consumer, KeySums<Tile>& sums,
                                   int first_key) {
  const auto& shared = consumer.shared;
  const auto& rows = consumer.rows();
  std::byte* const q = shared.q(consumer.place.stage);
  std::byte* const dout = shared.dout(consumer.place.stage);
  if constexpr (kMeeting == TileMeeting::partial) clear_not_finite<Tile>(q, dout);
  PairParts<Tile> parts;
  consumer.issue_rows(parts.p, shared.k(), q);
  consumer.issue_rows(parts.ds, shared.v(), dout);
  const auto lses = read_under_products<1, Tile>(parts.p, rows.lse);  // dP is under way
  weigh_pairs<kMeeting>(parts, lses, rows, consumer.params.call.scale, first_key + consumer.key());
  round_pairs<typename Tile::Element>(parts.rounded_p, parts.p);
  consumer.issue_sums(sums.dv, parts.rounded_p, dout);
  const auto deltas = read_under_products<1, Tile>(parts.ds, rows.delta);  // dV is under way
  differentiate_pairs<kMeeting>(parts, deltas);
  round_pairs<typename Tile::Element>(parts.rounded_ds, parts.ds);
  if constexpr (kWhere == HopperQueryGradients::here) {
    std::byte* const ds = shared.ds(consumer.place.stage);
    store_ds(ds + (warp_index() - 4) * kWarpBoxBytes, parts);
    share_with_consumers<Tile>();
    // Reads the place now: once dK is issued, a lane that is ahead may release the stage.
    const QueryPlace tile = rows.place;
    float dq[32];
    consumer.issue_dq(dq, ds);
    consumer.issue_sums(sums.dk, parts.rounded_ds, q);
    products_wait<1>();  // dQ and dV are there; dK is under way
    hold(dq);
    if constexpr (Tile::kAdding == HopperAdding::boxes) {
      add_dq_boxes(consumer, tile, dq);
    } else {
      add_dq(consumer, tile, dq);
    }
  } else {
    consumer.issue_sums(sums.dk, parts.rounded_ds, q);
  }
  products_wait<0>();
  hold(sums.dv);
  hold(sums.dk);
  consumer.release_tile();
}

/// Adds a thread's sums to a gradient in memory, (keys, channels); `shared`: other blocks add to
/// the gradients of these keys.
template <class Tile>
RINGLAB_KERNEL_CODE void leave_sums(const float (&sums)[Tile::kChannels / 2], float* head,
                                    std::int32_t keys, std::int32_t channels, int first_key,
                                    bool shared) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int key = first_key + 8 * i;
    if (key >= keys) continue;
    float* const to = head + std::int64_t{key} * channels;
    RINGLAB_UNROLL
    for (int n = 0; n < Tile::kChannels / 8; ++n) {
      const int channel = 8 * n + 2 * (lane_index() % 4);
      if (channel >= channels) continue;
      const float low = sums[4 * n + 2 * i], high = sums[4 * n + 2 * i + 1];
      shared ? atomic_add_pair(to + channel, low, high) : add_pair(to + channel, low, high);
    }
  }
}

template <class Tile, HopperQueryGradients kWhere>
RINGLAB_KERNEL_CODE void consume_queries(const HopperBackwardParams<typename Tile::Element>& params,
                                         HopperBackwardShared<Tile> shared, BlockKeys block) {
  BackwardConsumer<Tile> consumer{params, shared, consumer_number()};
  consumer.wait_for_tile();
  if (consumer.rows().meeting == TileMeeting::none) return;  // nobody sees these keys
  KeySums<Tile> sums;
  RINGLAB_UNROLL
  for (float& sum : sums.dk) sum = 0;
  RINGLAB_UNROLL
  for (float& sum : sums.dv) sum = 0;
  wait(&shared.barriers().keys_full, 0, "KV full");
  clear_not_finite_in<Tile, Tile::kKeyBytes>(shared.k());
  share_with_consumers<Tile>();
  RINGLAB_KEEP_LOOP
  for (; consumer.rows().meeting != TileMeeting::none; consumer.wait_for_tile()) {
    constexpr bool kIsLater = Tile::kLater && kWhere == HopperQueryGradients::here;
    const bool is_full = consumer.rows().meeting == TileMeeting::full;
    if constexpr (kIsLater) {
      if (is_full) {
        meet_tile_later<TileMeeting::full>(consumer, sums, block.first_key);
      } else {
        meet_tile_later<TileMeeting::partial>(consumer, sums, block.first_key);
      }
    } else if (is_full) {
      meet_tile<TileMeeting::full, kWhere>(consumer, sums, block.first_key);
    } else {
      meet_tile<TileMeeting::partial, kWhere>(consumer, sums, block.first_key);
    }
  }
  add_dq_of_tile_before(consumer, [] {});
  if (Tile::kAdding == HopperAdding::boxes && lane_index() == 0) wait_for_boxes<0>();
  const auto& call = params.call;
  const BlockShape& shape = call.shape;
  const std::int64_t first = std::int64_t{block.kv_head} * shape.keys;
  const int key = block.first_key + consumer.key();
  const bool others = params.order.block_heads * shape.kv_heads < shape.q_heads;
  leave_sums<Tile>(sums.dk, call.dk + first * shape.head_dim, shape.keys, shape.head_dim, key,
                   others);
  leave_sums<Tile>(sums.dv, call.dv + first * shape.v_dim, shape.keys, shape.v_dim, key, others);
}

// --- the kernel --------------------------------------------------------------------------------

/// A block of kThreads threads; there are hopper_backward_blocks().
template <class Tile, HopperQueryGradients kWhere>
RINGLAB_KERNEL_CODE void backward_hopper_block(
    const HopperBackwardParams<typename Tile::Element>& params) {
  const BlockKeys block = key_block_at(params.call.shape, params.order, block_index());
  const HopperBackwardShared<Tile> shared{shared_memory()};
  if (thread_index() == 0) init_backward_barriers(shared.barriers());
  sync_block();  // nobody waits at a barrier that is not there yet
  if (thread_index() < 128) {
    give_registers<Tile::kProducerRegisters>();
    produce_queries(params, shared, block);
  } else {
    take_registers<Tile::kConsumerRegisters>();
    consume_queries<Tile, kWhere>(params, shared, block);
  }
}

}  // namespace ringlab::cuda
