// The forward pass on Hopper (sm_90a): one producer, two or three consumers, softmax under matmul.
//
// The online softmax of FlashAttention (Dao et al. 2022, algorithm 1) in the arrangement of
// FlashAttention-3 (Shah et al. 2024, sections 3.1 and 3.2): a warpgroup that only copies
// ("producer"), warpgroups that only compute ("consumers", 64 queries each), and in every consumer
// the scores of the next block of keys on the tensor cores while the softmax of this one runs.
//
// Legend
//
//   S         Q Kᵀ, "scores"
//   P         2^(scale S - row_max), "weights"; the call's scale has log2 e in it
//   acc       Σ P V, not divided
//   C         channels: head_dim and v_dim, padded to a multiple of 64 by the tensor maps
//   block     kKeys keys, what one stage of the pipeline holds of K or of V
//   tile      kQueries queries of one head, what a thread block works on at a time
//   t, g, i   lane t of the 4 that share row g of 8, and row g + 8; i says which of the two. Of S
//             and of acc it has columns 8 n + 2 t + e, at [4 n + 2 i + e] (device_code.h)
//
// Shared memory (128-byte rows, swizzled: device_code.h), here for C = 128, two stages:
//
//   Q   [ channels 0-63: kQueries rows ][ channels 64-127 ]
//   K   stage 0 [ 0-63: kKeys rows ][ 64-127 ]   stage 1 [ … ][ … ]
//   V   stage 0 [ 0-63: kKeys rows ][ 64-127 ]   stage 1 [ … ][ … ]
//   barriers: a "full" and an "empty" one for Q and for every stage of K and of V
//
// "full" completes when the producer has announced its bytes and all of them have arrived; "empty"
// when every warp of every consumer has said that its products have read the buffer. By warp, since
// waiting for products is by warp. Both sides read and write these buffers through the
// asynchronous proxy only, so no proxy fence is needed between them.
//
// Time in a consumer; blocks are walked backwards, n counts them:
//
//   tensor cores   S(n+1)  acc += P(n) V(n)   S(n+2)  acc += P(n+1) V(n+1)
//   other units                softmax(n+1)               softmax(n+2)
//
// Consumers take turns in issuing products, so that one's products run under another's softmax.
//
// Rescaling is lazy: row_max need not be the maximum, only near it. While the scores exceed it by
// at most 8 in base 2 nothing is rescaled, weights are up to 2^8, and since the division at the end
// uses the same row_max the result is the same. Running states so hold a reference, not a maximum;
// for merge_state() that makes no difference.
//
// What is not finite. Keys that a row does not see get the weight 0 by selection, whatever K holds.
// But 0 · NaN in P V is NaN, and a block of V is multiplied for all rows of a tile; so where the
// tile has keys that only some rows see and a row ended as no number, its warp does it again,
// key by key (redo_rows). A NaN or infinity thus reaches rows that see it, and no others.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/device_code.h"
#include "optimized/cuda/hopper/exp2_polynomial.h"
#include "optimized/cuda/hopper/tile_order.h"
#include "optimized/cuda/portable/widen.cuh"
#include "optimized/cuda/uniform.cuh"
#include "reference/core/state.h"

namespace ringlab::cuda {

// --- sizes -------------------------------------------------------------------------------------

/// The kernel's tactics, piece by piece, so that what each is worth can be measured
/// (forward_hopper_ladder.h). The defaults are the kernel.
struct HopperTactics {
  bool scores_ahead = true;       ///< S of the next block is issued before P V of this one
  bool takes_turns = true;        ///< consumers take turns in issuing products
  bool knows_full_blocks = true;  ///< blocks that all queries see have no comparisons
  bool waits_late = true;         ///< ptxas is kept from waiting for P V before the softmax
  int slack = 8;                  ///< how far scores may exceed their row_max, in base 2
  int polynomials = 0;            ///< of 8 weights, how many are made by multiply-adds
};

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
  static constexpr int kThreads = 128 * (1 + kConsumers);
  /// With more channels products take longer than the softmax and hide it by themselves.
  static constexpr bool kTakesTurns = kTactics.takes_turns && kChannels <= 128;
  /// The 64 Ki registers of a multiprocessor, in steps of 8 per thread.
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 240 : 160;
  static constexpr int kQueryBytes = kQueries * kChannels * 2;
  static constexpr int kBlockBytes = kKeys * kChannels * 2;
  static_assert(kConsumers == 2 || kConsumers == 3);
  static_assert(kChannels % 64 == 0 && kKeys % 16 == 0 && kStages >= 2);
};

template <class Tile>
struct HopperBarriers {
  Barrier q_full, q_empty;
  Barrier k_full[Tile::kStages], k_empty[Tile::kStages];
  Barrier v_full[Tile::kStages], v_empty[Tile::kStages];
};

template <class Tile>
inline constexpr int kHopperSharedBytes = Tile::kQueryBytes + 2 * Tile::kStages* Tile::kBlockBytes +
                                          static_cast<int>(sizeof(HopperBarriers<Tile>));

/// The kernel's parameters. `call.scale` > 0: the largest score has the largest weight.
template <class Element>
struct HopperParams {
  ForwardCall<Element> call;
  TensorMap q, k, v;  ///< boxes of kQueries rows, and of kKeys rows
  TileOrder order;
};

/// The layout of shared memory.
template <class Tile>
struct HopperShared {
  std::byte* q;
  HopperBarriers<Tile>* barriers;

  RINGLAB_KERNEL_CODE std::byte* k(int stage) const {
    return q + Tile::kQueryBytes + stage * Tile::kBlockBytes;
  }
  RINGLAB_KERNEL_CODE std::byte* v(int stage) const { return k(Tile::kStages + stage); }
};

template <class Tile>
RINGLAB_KERNEL_CODE HopperShared<Tile> lay_out_shared() {
  std::byte* const start = shared_memory();
  std::byte* const barriers = start + Tile::kQueryBytes + 2 * Tile::kStages * Tile::kBlockBytes;
  return {start, reinterpret_cast<HopperBarriers<Tile>*>(barriers)};
}

/// Called by one thread. A buffer is full after one announcement and its bytes, empty after a word
/// of each consumer warp.
template <class Tile>
RINGLAB_KERNEL_CODE void init_hopper_barriers(HopperBarriers<Tile>* barriers) {
  constexpr int kWarps = 4 * Tile::kConsumers;
  init_barrier(&barriers->q_full, 1);
  init_barrier(&barriers->q_empty, kWarps);
  for (int stage = 0; stage < Tile::kStages; ++stage) {
    init_barrier(&barriers->k_full[stage], 1);
    init_barrier(&barriers->v_full[stage], 1);
    init_barrier(&barriers->k_empty[stage], kWarps);
    init_barrier(&barriers->v_empty[stage], kWarps);
  }
  publish_barriers();
}

/// Calls work(place, walk) for every tile of this thread block. Producer and consumers go through
/// the same tiles and the same blocks of keys, which is what keeps their barriers in step.
template <class Tile, class Work>
RINGLAB_KERNEL_CODE void for_each_tile(const HopperParams<typename Tile::Element>& params,
                                       Work&& work) {
  const std::int64_t count = tile_count(params.order);
  for (int round = 0; std::int64_t{round} * block_count() < count; ++round) {
    const std::int64_t turn = turn_of(block_index(), block_count(), round);
    if (turn >= count) continue;
    const TilePlace place = tile_at(params.order, static_cast<std::int32_t>(turn));
    const TileKeys keys = params.call.mask.tiles[place.tile];
    work(place, walk_of(keys.any, keys.all, Tile::kKeys));
  }
}

// --- the producer ------------------------------------------------------------------------------

/// All channels of `rows` rows from `row` on: one box for every 64 channels.
template <class Tile>
RINGLAB_KERNEL_CODE void load_rows(std::byte* to, const TensorMap* map, Barrier* full, int rows,
                                   int head, int row) {
  arrive_expecting(full, static_cast<std::uint32_t>(rows * Tile::kChannels * 2));
  for (int channel = 0; channel < Tile::kChannels; channel += 64) {
    load_box(to + rows * 2 * channel, map, full, head, row, channel);
  }
}

/// The producer's thread. K of a block goes ahead of V of the block before it, as consumers need
/// them.
template <class Tile>
struct Producer {
  const HopperParams<typename Tile::Element>& params;
  HopperShared<Tile> shared;
  PipelinePlace<Tile::kStages> k_place = {}, v_place = {};
  PipelinePlace<1> q_place = {};

  RINGLAB_KERNEL_CODE void load_q(TilePlace place) {
    wait(&shared.barriers->q_empty, q_place.parity ^ 1, "Q empty");
    load_rows<Tile>(shared.q, &params.q, &shared.barriers->q_full, Tile::kQueries, place.head,
                    place.tile * Tile::kQueries);
    q_place.advance();
  }
  RINGLAB_KERNEL_CODE void load_k(int head, int row) {
    const int stage = k_place.stage;
    wait(&shared.barriers->k_empty[stage], k_place.parity ^ 1, "K empty");
    load_rows<Tile>(shared.k(stage), &params.k, &shared.barriers->k_full[stage], Tile::kKeys, head,
                    row);
    k_place.advance();
  }
  RINGLAB_KERNEL_CODE void load_v(int head, int row) {
    const int stage = v_place.stage;
    wait(&shared.barriers->v_empty[stage], v_place.parity ^ 1, "V empty");
    load_rows<Tile>(shared.v(stage), &params.v, &shared.barriers->v_full[stage], Tile::kKeys, head,
                    row);
    v_place.advance();
  }
};

template <class Tile>
RINGLAB_KERNEL_CODE void produce(const HopperParams<typename Tile::Element>& params,
                                 HopperShared<Tile> shared) {
  const BlockShape& shape = params.call.shape;
  const int group = shape.q_heads / shape.kv_heads;
  Producer<Tile> producer{params, shared};
  for_each_tile<Tile>(params, [&](TilePlace place, KeyWalk walk) {
    if (walk.blocks == 0) return;
    // batch · q_heads / group = batch · kv_heads: heads of all batches are numbered through.
    const int kv_head = place.head / group;
    const auto row_of = [&](int block) { return walk.first + block * Tile::kKeys; };
    producer.load_k(kv_head, row_of(walk.blocks - 1));
    producer.load_q(place);
    for (int block = walk.blocks - 1; block >= 0; --block) {
      if (block > 0) producer.load_k(kv_head, row_of(block - 1));
      producer.load_v(kv_head, row_of(block));
    }
  });
}

// --- a consumer: its registers -----------------------------------------------------------------

/// The rows a thread works on, and its part of them: columns (of scores: keys, of acc: channels)
/// 8 n + 2 t and the next one of its two rows. Arrays are [4 n + 2 i + (0 or 1)], see
/// device_code.h.
template <class Tile>
struct ThreadRows {
  float scores[Tile::kKeys / 2];
  std::uint32_t weights[Tile::kKeys / 16][4];
  float acc[Tile::kChannels / 2];
  float row_max[2];  ///< -inf, or at most `slack` below the largest of this row so far
  float row_sum[2];  ///< of this thread's columns only
  float factor[2];   ///< what acc has yet to be multiplied by
  KeyRange sees[2];  ///< less first_column()
  std::int32_t query[2];
  std::int32_t head;
};

RINGLAB_KERNEL_CODE int lane_of_row() { return thread_index() % 4; }
RINGLAB_KERNEL_CODE int first_column() { return 2 * lane_of_row(); }

/// The sum over the four lanes that share a row.
RINGLAB_KERNEL_CODE float sum_of_row(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}
/// NaN loses against a number: it shows in the row's sum, where nothing hides it.
RINGLAB_KERNEL_CODE float max_of_row(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}

/// The number of a row among those of all heads.
template <class Tile>
RINGLAB_KERNEL_CODE std::int64_t row_number(const BlockShape& shape, const ThreadRows<Tile>& rows,
                                            int i) {
  return std::int64_t{rows.head} * shape.queries + rows.query[i];
}

/// Two neighbours in memory, read or written at once.
template <class Value>
struct alignas(2 * sizeof(Value)) PairOf {
  Value low, high;
};

/// Calls act(column of v, index of the first of two accumulators) for what exists of row i.
template <class Tile, class Act>
RINGLAB_KERNEL_CODE void for_pairs_of_row(const BlockShape& shape, const ThreadRows<Tile>& rows,
                                          int i, Act&& act) {
  if (rows.query[i] >= shape.queries) return;
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kChannels / 8; ++n) {
    const int column = 8 * n + first_column();
    if (column < shape.v_dim) act(column, 4 * n + 2 * i);
  }
}

// --- a consumer: states in and out -------------------------------------------------------------

/// The row's state: empty, or where the block before left it.
template <class Tile>
RINGLAB_KERNEL_CODE void begin_state(const ForwardCall<typename Tile::Element>& call,
                                     ThreadRows<Tile>& rows) {
  RINGLAB_UNROLL
  for (float& value : rows.acc) value = 0;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    rows.row_max[i] = kEmptyRowMax<float>;
    rows.row_sum[i] = 0;
    rows.factor[i] = 1;
    if (call.begins || rows.query[i] >= call.shape.queries) continue;
    const std::int64_t number = row_number(call.shape, rows, i);
    const SoftmaxState<float> state = call.running.states[number];
    rows.row_max[i] = state.row_max;
    // Once: this thread's sum is added to those of the row's other lanes at the end.
    rows.row_sum[i] = lane_of_row() == 0 ? state.row_sum : 0;
    if (state.row_max == kEmptyRowMax<float>) continue;
    const float* acc = call.running.accs + number * call.shape.v_dim;
    for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
      const auto pair = *reinterpret_cast<const PairOf<float>*>(acc + column);
      rows.acc[at] = pair.low;
      rows.acc[at + 1] = pair.high;
    });
  }
}

template <class Tile>
RINGLAB_KERNEL_CODE void begin_rows(const ForwardCall<typename Tile::Element>& call,
                                    TilePlace place, int consumer, ThreadRows<Tile>& rows) {
  const int thread = thread_index() % 128;
  rows.head = place.head;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    rows.query[i] =
        place.tile * Tile::kQueries + 64 * consumer + 16 * (thread / 32) + thread % 32 / 4 + 8 * i;
    KeyRange sees;
    if (rows.query[i] < call.shape.queries) sees = call.mask.rows[rows.query[i]];
    rows.sees[i] = {sees.first - first_column(), sees.last - first_column()};
  }
  begin_state(call, rows);
}

/// Leaves the state in memory for the block that comes next.
template <class Tile>
RINGLAB_KERNEL_CODE void leave_state(const ForwardCall<typename Tile::Element>& call,
                                     const ThreadRows<Tile>& rows, int i) {
  if (rows.query[i] >= call.shape.queries) return;
  const std::int64_t number = row_number(call.shape, rows, i);
  if (lane_of_row() == 0) call.running.states[number] = {rows.row_max[i], rows.row_sum[i]};
  float* acc = call.running.accs + number * call.shape.v_dim;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    *reinterpret_cast<PairOf<float>*>(acc + column) = {rows.acc[at], rows.acc[at + 1]};
  });
}

/// out = acc / row_sum, straight from registers. A row that saw nothing has the sum 0, and its acc
/// is 0; a row that saw nothing but NaN has a row_max of -inf too, but the sum NaN.
template <class Tile>
RINGLAB_KERNEL_CODE void write_out(const ForwardCall<typename Tile::Element>& call,
                                   const ThreadRows<Tile>& rows, int i) {
  if (rows.query[i] >= call.shape.queries) return;
  constexpr float kLn2 = 0.693147180559945309f;
  const std::int64_t number = row_number(call.shape, rows, i);
  const float sum = rows.row_sum[i];
  const float inverse = sum == 0 ? 0 : 1 / sum;
  if (lane_of_row() == 0) {
    call.lse[number] = sum == 0 ? kEmptyRowMax<float> : rows.row_max[i] * kLn2 + logf(sum);
  }
  using Element = typename Tile::Element;
  Element* out = call.out + number * call.shape.v_dim;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    const auto pair = pack<Element>(rows.acc[at] * inverse, rows.acc[at + 1] * inverse);
    *reinterpret_cast<PairOf<Element>*>(out + column) = std::bit_cast<PairOf<Element>>(pair);
  });
}

template <class Tile>
RINGLAB_KERNEL_CODE void end_rows(const ForwardCall<typename Tile::Element>& call,
                                  ThreadRows<Tile>& rows) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    rows.row_sum[i] = sum_of_row(rows.row_sum[i]);
    if (call.finishes) {
      write_out(call, rows, i);
    } else {
      leave_state(call, rows, i);
    }
  }
}

// --- a consumer: softmax -----------------------------------------------------------------------

/// Scores of keys that a row does not see become -inf; `first` is the block's first key. Compared
/// are numbers that the compiler knows, so that no more than two registers are needed for a row.
template <class Tile>
RINGLAB_KERNEL_CODE void hide_unseen(ThreadRows<Tile>& rows, int first) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const std::int32_t begin = rows.sees[i].first - first;
    const std::int32_t end = rows.sees[i].last - first;
    RINGLAB_UNROLL
    for (int n = 0; n < Tile::kKeys / 8; ++n) {
      RINGLAB_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int key = 8 * n + e;
        if (key < begin || key >= end) rows.scores[4 * n + 2 * i + e] = kEmptyRowMax<float>;
      }
    }
  }
}

/// Moves row_max when the scores exceed it by too much. acc is still busy: `factor` is what it has
/// to be multiplied by. `top`: the largest score, scaled.
template <class Tile>
RINGLAB_KERNEL_CODE void raise_row_max(ThreadRows<Tile>& rows, int i, float top) {
  rows.factor[i] = 1;
  if (!(top > rows.row_max[i] + Tile::kTactics.slack)) return;
  rows.factor[i] = exp2_approx(rows.row_max[i] - top);  // 0 when nothing was seen before
  rows.row_max[i] = top;
  rows.row_sum[i] *= rows.factor[i];
}

/// 2^x for the n-th weight of a thread.
template <class Tile>
RINGLAB_KERNEL_CODE float weight_of(float x, int n) {
  return n % 8 < Tile::kTactics.polynomials ? exp2_polynomial(x) : exp2_approx(x);
}

/// Scores become weights, in place: 2^(scale · score - row_max), and their sum is taken.
template <class Tile>
RINGLAB_KERNEL_CODE void weigh(ThreadRows<Tile>& rows, float scale) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    // From the first pair, not from -inf: one instruction less. A NaN is left out by fmaxf() here as
    // there, and of nothing but NaN the largest raises no row_max.
    float top = fmaxf(rows.scores[2 * i], rows.scores[2 * i + 1]);
    RINGLAB_UNROLL
    for (int n = 1; n < Tile::kKeys / 8; ++n) {
      top = fmaxf(top, fmaxf(rows.scores[4 * n + 2 * i], rows.scores[4 * n + 2 * i + 1]));
    }
    raise_row_max(rows, i, max_of_row(top) * scale);
    // A row that has seen nothing yet: any number does, but -inf - -inf is none.
    const float shift = rows.row_max[i] == kEmptyRowMax<float> ? 0 : rows.row_max[i];
    RINGLAB_UNROLL
    for (int n = 0; n < Tile::kKeys / 8; ++n) {
      RINGLAB_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& score = rows.scores[4 * n + 2 * i + e];
        score = weight_of<Tile>(fmaf(score, scale, -shift), 2 * n + e);
        rows.row_sum[i] += score;
      }
    }
  }
}

/// Weights in the fragments of operand A: for 16 keys, rows g and g + 8 of keys 2 t, 2 t + 1, then
/// of keys 2 t + 8, 2 t + 9. The accumulators of two neighbouring n are in that very order.
template <class Tile>
RINGLAB_KERNEL_CODE void round_weights(ThreadRows<Tile>& rows) {
  RINGLAB_UNROLL
  for (int step = 0; step < Tile::kKeys / 16; ++step) {
    RINGLAB_UNROLL
    for (int part = 0; part < 4; ++part) {
      const int at = 8 * step + 2 * part;
      rows.weights[step][part] = pack<typename Tile::Element>(rows.scores[at], rows.scores[at + 1]);
    }
  }
}

/// Does what raise_row_max() left to do. Rare, so it is a branch and not 2 · C / 4 products.
template <class Tile>
RINGLAB_KERNEL_CODE void rescale(ThreadRows<Tile>& rows) {
  if (rows.factor[0] == 1 && rows.factor[1] == 1) return;
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kChannels / 8; ++n) {
    RINGLAB_UNROLL
    for (int e = 0; e < 4; ++e) rows.acc[4 * n + e] *= rows.factor[e / 2];
  }
}

// --- a consumer: products ----------------------------------------------------------------------

template <class Tile>
struct Consumer {
  const HopperParams<typename Tile::Element>& params;
  HopperShared<Tile> shared;
  int number;  ///< among the consumers
  /// The place of the block whose scores are next; V of the block before it has the place before.
  PipelinePlace<Tile::kStages> place = {};
  PipelinePlace<1> q_place = {};

  /// S = Q Kᵀ, whose buffers are full.
  RINGLAB_KERNEL_CODE void issue_scores(ThreadRows<Tile>& rows) const {
    const Operand q{shared.q + number * 64 * 128, Tile::kQueries};
    const Operand k{shared.k(place.stage), Tile::kKeys};
    products_begin();
    RINGLAB_UNROLL
    for (int channel = 0; channel < Tile::kChannels; channel += 16) {
      multiply_rows<typename Tile::Element, Tile::kKeys>(rows.scores, q, k, channel, channel > 0);
    }
    products_commit();
  }

  /// acc += P V of the block before.
  RINGLAB_KERNEL_CODE void issue_weighted_sum(ThreadRows<Tile>& rows) const {
    const PipelinePlace<Tile::kStages> v_place = place.before();
    const Operand v{shared.v(v_place.stage), Tile::kKeys};
    wait(&shared.barriers->v_full[v_place.stage], v_place.parity, "V full");
    products_begin();
    RINGLAB_UNROLL
    for (int step = 0; step < Tile::kKeys / 16; ++step) {
      multiply_weights<typename Tile::Element, Tile::kChannels>(rows.acc, rows.weights[step], v,
                                                                16 * step);
    }
    products_commit();
  }

  RINGLAB_KERNEL_CODE void wait_for_k() const {
    wait(&shared.barriers->k_full[place.stage], place.parity, "K full");
  }
  RINGLAB_KERNEL_CODE void release(Barrier* empty) const {
    if (thread_index() % 32 == 0) arrive(empty);
  }
  RINGLAB_KERNEL_CODE void release_k() const { release(&shared.barriers->k_empty[place.stage]); }
  /// `last`: Q was read for the last time by the scores that are there now.
  RINGLAB_KERNEL_CODE void release_q(bool last) const {
    if (last) release(&shared.barriers->q_empty);
  }
  RINGLAB_KERNEL_CODE void release_v() const {
    release(&shared.barriers->v_empty[place.before().stage]);
  }

  /// Named barrier 1 + c is consumer c's turn: it waits, the one before it arrives. In a ring; the
  /// last consumer gives the first one its first turn.
  RINGLAB_KERNEL_CODE void take_turn() const {
    if constexpr (Tile::kTakesTurns) sync_threads(1 + number, 256);
  }
  RINGLAB_KERNEL_CODE void pass_turn() const {
    if constexpr (Tile::kTakesTurns) arrive_threads(1 + (number + 1) % Tile::kConsumers, 256);
  }
};

/// Scores of the block that begins at key `first` become weights; acc may still be busy.
template <BlockCoverage kCoverage, class Tile>
RINGLAB_KERNEL_CODE void soften(const Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first) {
  constexpr bool kCompares =
      kCoverage == BlockCoverage::partial || !Tile::kTactics.knows_full_blocks;
  if constexpr (kCompares) hide_unseen(rows, first);
  weigh(rows, consumer.params.call.scale);
}

/// The first block of a tile: nothing to overlap with but the other consumers.
template <class Tile>
RINGLAB_KERNEL_CODE void first_block(Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first,
                                     bool last) {
  wait(&consumer.shared.barriers->q_full, consumer.q_place.parity, "Q full");
  consumer.wait_for_k();
  consumer.issue_scores(rows);
  products_wait<0>();
  hold(rows.scores);
  consumer.release_k();
  consumer.release_q(last);
  soften<BlockCoverage::partial>(consumer, rows, first);
  rescale(rows);
  round_weights(rows);
  consumer.place.advance();
}

/// P V of the block before, and S and the softmax of this one.
template <BlockCoverage kCoverage, class Tile>
RINGLAB_KERNEL_CODE void next_block(Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first,
                                    bool last) {
  consumer.wait_for_k();
  consumer.take_turn();
  consumer.issue_scores(rows);
  consumer.issue_weighted_sum(rows);
  consumer.pass_turn();
  products_wait<1>();  // the scores are there; acc and weights are still in use
  hold(rows.scores);
  consumer.release_k();
  consumer.release_q(last);
  soften<kCoverage>(consumer, rows, first);
  hold(rows.scores);
  if constexpr (Tile::kTactics.waits_late) {
    compute_before_waiting(rows.row_sum[0] + rows.row_sum[1]);
  }
  products_wait<0>();
  hold(rows.acc);
  consumer.release_v();
  rescale(rows);
  round_weights(rows);
  consumer.place.advance();
}

/// P V of the last block.
template <class Tile>
RINGLAB_KERNEL_CODE void last_products(Consumer<Tile>& consumer, ThreadRows<Tile>& rows) {
  consumer.q_place.advance();
  consumer.issue_weighted_sum(rows);
  products_wait<0>();
  hold(rows.acc);
  consumer.release_v();
}

/// A step without scores_ahead: P V of the block before, and then the scores of this one.
template <BlockCoverage kCoverage, class Tile>
RINGLAB_KERNEL_CODE void block_after_block(Consumer<Tile>& consumer, ThreadRows<Tile>& rows,
                                           int first, bool last) {
  consumer.take_turn();
  consumer.issue_weighted_sum(rows);
  products_wait<0>();
  hold(rows.acc);
  consumer.release_v();
  consumer.wait_for_k();
  consumer.issue_scores(rows);
  consumer.pass_turn();
  products_wait<0>();
  hold(rows.scores);
  consumer.release_k();
  consumer.release_q(last);
  soften<kCoverage>(consumer, rows, first);
  rescale(rows);
  round_weights(rows);
  consumer.place.advance();
}

template <BlockCoverage kCoverage, class Tile>
RINGLAB_KERNEL_CODE void step(Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first,
                              bool last) {
  if constexpr (Tile::kTactics.scores_ahead) {
    next_block<kCoverage>(consumer, rows, first, last);
  } else {
    block_after_block<kCoverage>(consumer, rows, first, last);
  }
}

/// Walks from the last block to the first: partial ones, full ones, partial ones.
template <class Tile>
RINGLAB_KERNEL_CODE void walk_keys(Consumer<Tile>& consumer, ThreadRows<Tile>& rows, KeyWalk walk) {
  const auto first_key = [&](int block) { return walk.first + block * Tile::kKeys; };
  int block = walk.blocks - 1;
  first_block(consumer, rows, first_key(block), block == 0);
  for (--block; block >= walk.full_end; --block) {
    step<BlockCoverage::partial>(consumer, rows, first_key(block), block == 0);
  }
  for (; block >= walk.full_begin; --block) {
    step<BlockCoverage::full>(consumer, rows, first_key(block), block == 0);
  }
  for (; block >= 0; --block)
    step<BlockCoverage::partial>(consumer, rows, first_key(block), block == 0);
  last_products(consumer, rows);
}

// --- a consumer: rows that ended as no number --------------------------------------------------

/// True when any thread of the warp has an accumulator that is infinite or NaN. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE bool any_not_finite(const ThreadRows<Tile>& rows) {
  float probe = 0;  // stays 0 or becomes NaN
  RINGLAB_UNROLL
  for (const float value : rows.acc) probe = fmaf(value, 0.0f, probe);
  RINGLAB_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) probe += shuffle_xor(probe, mask);
  return !(probe == 0);
}

/// q · k of row i, over the channels of all four lanes. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE float score_of(const ForwardCall<typename Tile::Element>& call,
                                   const ThreadRows<Tile>& rows, int i,
                                   const typename Tile::Element* key) {
  float sum = 0;
  if (rows.query[i] < call.shape.queries) {
    const auto* query = call.q + row_number(call.shape, rows, i) * call.shape.head_dim;
    RINGLAB_KEEP_LOOP
    for (int c = lane_of_row(); c < call.shape.head_dim; c += 4) {
      sum = fmaf(widen(query[c]), widen(key[c]), sum);
    }
  }
  return sum_of_row(sum);
}

/// Takes one more visible key into row i.
template <class Tile>
RINGLAB_KERNEL_CODE void add_key(const ForwardCall<typename Tile::Element>& call,
                                 ThreadRows<Tile>& rows, int i, float score,
                                 const typename Tile::Element* value) {
  raise_row_max(rows, i, score);
  const float shift = rows.row_max[i] == kEmptyRowMax<float> ? 0 : rows.row_max[i];
  const float weight = exp2_approx(score - shift);
  if (lane_of_row() == 0) rows.row_sum[i] += weight;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    RINGLAB_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float product = weight * widen(value[column + e]);
      rows.acc[at + e] = rows.acc[at + e] * rows.factor[i] + product;
    }
  });
}

/// The warp's 16 rows again from their states in memory, which nobody has touched yet. Reads what
/// each row sees and nothing else. Slow, and for inputs that are not finite only.
template <class Tile>
RINGLAB_KERNEL_CODE void redo_rows(const HopperParams<typename Tile::Element>& params,
                                   ThreadRows<Tile>& rows, KeyRange any) {
  const ForwardCall<typename Tile::Element>& call = params.call;
  const BlockShape& shape = call.shape;
  const std::int64_t kv_head = rows.head / (shape.q_heads / shape.kv_heads);
  begin_state(call, rows);
  RINGLAB_KEEP_LOOP
  for (int key = any.first; key < any.last; ++key) {
    const std::int64_t number = kv_head * shape.keys + key;
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float product = score_of(call, rows, i, call.k + number * shape.head_dim);
      const int column = key - first_column();
      if (column < rows.sees[i].first || column >= rows.sees[i].last) continue;
      add_key(call, rows, i, product * call.scale, call.v + number * shape.v_dim);
    }
  }
}

// --- the kernel --------------------------------------------------------------------------------

RINGLAB_KERNEL_CODE KeyWalk uniform_walk(KeyWalk walk) {
  return {uniform(walk.first), uniform(walk.blocks), uniform(walk.full_begin),
          uniform(walk.full_end)};
}

template <class Tile>
RINGLAB_KERNEL_CODE void consume(const HopperParams<typename Tile::Element>& params,
                                 HopperShared<Tile> shared) {
  Consumer<Tile> consumer{params, shared, consumer_number()};
  ThreadRows<Tile> rows;
  if (consumer.number == Tile::kConsumers - 1) consumer.pass_turn();
  for_each_tile<Tile>(params, [&](TilePlace place, KeyWalk walk) {
    walk = uniform_walk(walk);
    begin_rows(params.call, place, consumer.number, rows);
    if (walk.blocks > 0) {
      walk_keys(consumer, rows, walk);
      const bool some_are_partial = walk.full_end - walk.full_begin < walk.blocks;
      if (some_are_partial && any_not_finite(rows)) {
        redo_rows(params, rows, params.call.mask.tiles[place.tile].any);
      }
    }
    end_rows(params.call, rows);
  });
  if (consumer.number == 0) consumer.take_turn();  // what the last consumer passed on
}

/// A block of kThreads threads and kHopperSharedBytes per multiprocessor, or fewer blocks.
template <class Tile>
RINGLAB_KERNEL_CODE void forward_hopper_tiles(const HopperParams<typename Tile::Element>& params) {
  const HopperShared<Tile> shared = lay_out_shared<Tile>();
  if (thread_index() == 0) init_hopper_barriers<Tile>(shared.barriers);
  sync_block();  // nobody waits at a barrier that is not there yet
  if (thread_index() < 128) {
    give_registers<Tile::kProducerRegisters>();
    if (thread_index() == 0) produce<Tile>(params, shared);
  } else {
    take_registers<Tile::kConsumerRegisters>();
    consume<Tile>(params, shared);
  }
}

}  // namespace ringlab::cuda
