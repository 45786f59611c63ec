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
//   t, g, i   lane t of the 4 that share row g of 8, and row g + 8; i says which of the two. The
//             lane has columns 8 n + 2 t + e of S and of acc, at [4 n + 2 i + e] (device_code.h)
//
// Shared memory (128-byte rows, swizzled: device_code.h), here for C = 128, two stages:
//
//   Q   [ channels 0-63: kQueries rows ][ channels 64-127 ]
//   K   stage 0 [ 0-63: kKeys rows ][ 64-127 ]   stage 1 [ … ][ … ]
//   V   stage 0 [ 0-63: kKeys rows ][ 64-127 ]   stage 1 [ … ][ … ]
//   results, and two tiles that are told, where these are chosen
//   barriers: a "full" and an "empty" one for Q and for every stage of K and of V; "told", "heard"
//
// "full" completes when the producer has announced its bytes and all of them have arrived; "empty"
// when every warp of every consumer has said that its products have read the buffer: warps arrive
// one by one, since they wait for products one by one. Both sides read and write these buffers
// through the asynchronous proxy only, so no proxy fence is needed between them.
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
// uses the same row_max the result is the same. Running states thus hold a reference, not a
// maximum, which makes no difference for merge_state().
//
// The kernel has four options (HopperTactics; docs/gpu.md has their worth). Q in registers: at 128
// channels a quarter of the shared memory that products read is Q, again for every block; read
// once, it leaves its buffer to the next tile. Results in boxes: 16 rows of a warp go to shared
// memory by stmatrix, and from there in one copy, which cuts at the tensor's edges. Tiles told: a
// warp that has nothing else to do finds out the next tile, its walk and the keys that each of its
// queries sees, while other warps work on this tile. Pairs of heads: two blocks of a cluster have a
// query head each of one K/V head, and therefore the same walk; each copies half of every block of
// keys to both, and tells both when it has read.
//
// NaN and infinity. Keys that a row does not see get the weight 0 by selection, whatever K holds.
// But 0 · NaN in P V is NaN, and a block of V is multiplied for all rows of a tile; so where the
// tile has keys that only some rows see and a row ended as no number, its warp does this row again,
// key by key (redo_rows). A NaN or infinity thus reaches rows that see it, and no others.
//
// Large scores. Exponents are score · scale - row_max in one multiply-add, which is exact but for
// one rounding; row_max itself is rounded, and the largest weight is 2 to the power of the rounding
// error. The error may be 1 and more where row_max is beyond 2^24: such rows are done again, too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "optimized/cuda/hopper/exp2_polynomial.h"
#include "optimized/cuda/hopper/forward_hopper_rows.cuh"
#include "optimized/cuda/hopper/forward_hopper_tile.cuh"
#include "optimized/cuda/portable/widen.cuh"
#include "optimized/cuda/uniform.cuh"
#include "reference/core/state.h"

namespace ringlab::cuda {

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

/// Loads a block of keys or values from row `row` on; in a cluster each block loads a part for all.
template <class Tile>
RINGLAB_KERNEL_CODE void load_keys(std::byte* to, const TensorMap* map, Barrier* full, int head,
                                   int row) {
  if constexpr (Tile::kCluster == 1) {
    load_rows<Tile>(to, map, full, Tile::kKeys, head, row);
  } else {
    const int first = cluster_rank() * Tile::kBoxKeys;
    arrive_expecting(full, Tile::kBlockBytes);
    for (int channel = 0; channel < Tile::kChannels; channel += 64) {
      load_box_for_all(to + Tile::kKeys * 2 * channel + first * 128, map, full, Tile::kCluster,
                       head, row + first, channel);
    }
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
    load_keys<Tile>(shared.k(stage), &params.k, &shared.barriers->k_full[stage], head, row);
    k_place.advance();
  }
  RINGLAB_KERNEL_CODE void load_v(int head, int row) {
    const int stage = v_place.stage;
    wait(&shared.barriers->v_empty[stage], v_place.parity ^ 1, "V empty");
    load_keys<Tile>(shared.v(stage), &params.v, &shared.barriers->v_full[stage], head, row);
    v_place.advance();
  }
};

template <class Tile>
RINGLAB_KERNEL_CODE void produce(const HopperParams<typename Tile::Element>& params,
                                 HopperShared<Tile> shared) {
  const BlockShape& shape = params.call.shape;
  const int group = shape.q_heads / shape.kv_heads;
  Producer<Tile> producer{params, shared};
  take_tiles<Tile>(params, shared, true, [&](TilePlace place, KeyWalk walk, const KeyRange*) {
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

// --- a consumer: softmax -----------------------------------------------------------------------

/// Sets scores of keys that a row does not see to -inf; `first` is the block's first key. Columns
/// are constants that the compiler knows, so that a row needs no more than two registers.
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

/// Moves row_max when the scores exceed it by too much. acc is still busy: it must be multiplied by
/// `factor` later. `top`: the largest score, scaled.
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

/// Turns scores into weights, in place: 2^(scale · score - row_max), and adds up their sum.
template <class Tile>
RINGLAB_KERNEL_CODE void weigh(ThreadRows<Tile>& rows, float scale) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    // Begins with the first pair and not with -inf, which saves an instruction. fmaxf() leaves NaN
    // out, and if all scores are NaN the largest raises no row_max.
    float top = fmaxf(rows.scores[2 * i], rows.scores[2 * i + 1]);
    RINGLAB_UNROLL
    for (int n = 1; n < Tile::kKeys / 8; ++n) {
      top = fmaxf(top, fmaxf(rows.scores[4 * n + 2 * i], rows.scores[4 * n + 2 * i + 1]));
    }
    raise_row_max(rows, i, max_of_row(top) * scale);
    // For a row that has seen nothing yet any number does, but -inf - -inf would be NaN.
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

/// Multiplies acc by the factors of raise_row_max(). Rare, so it is a branch and not 2 · C / 4
/// products.
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

  /// Issues S = Q Kᵀ; the buffers of both are full.
  RINGLAB_KERNEL_CODE void issue_scores(ThreadRows<Tile>& rows) const {
    using Element = typename Tile::Element;
    const Operand q{shared.q + number * 64 * 128, Tile::kQueries};
    const Operand k{shared.k(place.stage), Tile::kKeys};
    products_begin();
    RINGLAB_UNROLL
    for (int channel = 0; channel < Tile::kChannels; channel += 16) {
      if constexpr (Tile::kTactics.keeps_queries) {
        multiply_rows<Element, Tile::kKeys>(rows.scores, rows.queries[channel / 16], k, channel,
                                            channel > 0);
      } else {
        multiply_rows<Element, Tile::kKeys>(rows.scores, q, k, channel, channel > 0);
      }
    }
    products_commit();
  }

  /// Loads Q into registers, and gives its buffer to the next tile.
  RINGLAB_KERNEL_CODE void keep_queries(ThreadRows<Tile>& rows) const {
    const std::byte* const of_warp = shared.q + (thread_index() / 32 - 4) * kWarpBoxBytes;
    RINGLAB_UNROLL
    for (int channel = 0; channel < Tile::kChannels; channel += 16) {
      const int box = channel / kBoxChannels * Tile::kQueries * static_cast<int>(kBoxRowBytes);
      load_matrices(rows.queries[channel / 16], of_warp + box + fragment_place(channel));
    }
    fence_async_proxy();
    release(&shared.barriers->q_empty);
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
  /// Releases K or V of a stage, to which every block of the cluster copies.
  RINGLAB_KERNEL_CODE void release_keys(Barrier* empty) const {
    if constexpr (Tile::kCluster == 1) return release(empty);
    if (thread_index() % 32 < Tile::kCluster) arrive_at(empty, thread_index() % 32);
  }
  RINGLAB_KERNEL_CODE void release_k() const {
    release_keys(&shared.barriers->k_empty[place.stage]);
  }
  /// Releases Q if the scores that are done now were the `last` to read it.
  RINGLAB_KERNEL_CODE void release_q(bool last) const {
    if (last && !Tile::kTactics.keeps_queries) release(&shared.barriers->q_empty);
  }
  RINGLAB_KERNEL_CODE void release_v() const {
    release_keys(&shared.barriers->v_empty[place.before().stage]);
  }

  /// Named barrier 1 + c is consumer c's turn: it waits there, and the consumer before it arrives.
  /// The consumers form a ring; the last one gives the first its first turn.
  RINGLAB_KERNEL_CODE void take_turn() const {
    if constexpr (Tile::kTakesTurns) sync_threads(1 + number, 256);
  }
  RINGLAB_KERNEL_CODE void pass_turn() const {
    if constexpr (Tile::kTakesTurns) arrive_threads(1 + (number + 1) % Tile::kConsumers, 256);
  }
};

/// Turns scores of the block that begins at key `first` into weights; acc may still be busy.
template <BlockCoverage kCoverage, class Tile>
RINGLAB_KERNEL_CODE void soften(const Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first) {
  constexpr bool kCompares =
      kCoverage == BlockCoverage::partial || !Tile::kTactics.knows_full_blocks;
  if constexpr (kCompares) hide_unseen(rows, first);
  weigh(rows, consumer.params.call.scale);
}

/// The first block of a tile, which overlaps with other consumers only.
template <class Tile>
RINGLAB_KERNEL_CODE void first_block(Consumer<Tile>& consumer, ThreadRows<Tile>& rows, int first,
                                     bool last) {
  wait(&consumer.shared.barriers->q_full, consumer.q_place.parity, "Q full");
  if constexpr (Tile::kTactics.keeps_queries) consumer.keep_queries(rows);
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

// --- a consumer: rows that ended as NaN, infinite, or with a row_max beyond 2^24 ----------------

/// True for all lanes of row i when an accumulator is infinite or NaN.
template <class Tile>
RINGLAB_KERNEL_CODE bool is_not_finite(const ThreadRows<Tile>& rows, int i) {
  float probe = 0;  // stays 0 or becomes NaN
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kChannels / 8; ++n) {
    probe = fmaf(rows.acc[4 * n + 2 * i], 0.0f, probe);
    probe = fmaf(rows.acc[4 * n + 2 * i + 1], 0.0f, probe);
  }
  return !(sum_of_row(probe) == 0);
}

/// True when row_max of row i is so large that its rounding error, half a unit in the last place,
/// matters as an exponent: the largest weight is that power of 2.
template <class Tile>
RINGLAB_KERNEL_CODE bool is_out_of_reach(const ThreadRows<Tile>& rows, int i) {
  const float size = fabsf(rows.row_max[i]);
  return size > 0x1p24f && size <= 0x1.fffffep127f;
}

/// The rows of a thread that have to be done again. all_see_all: no row sees less than the others.
struct LostRows {
  bool are_lost[2];
};
template <class Tile>
RINGLAB_KERNEL_CODE LostRows lost_rows(const ThreadRows<Tile>& rows, bool all_see_all) {
  LostRows lost;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    lost.are_lost[i] = is_out_of_reach(rows, i) || (!all_see_all && is_not_finite(rows, i));
  }
  return lost;
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

/// Computes lost rows again from their states in memory, which are still unchanged. Reads only keys
/// that each row sees, and scales scores before it subtracts. Slow, and only for inputs that are
/// not finite or have scores beyond 2^24. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE void redo_rows(const HopperParams<typename Tile::Element>& params,
                                   ThreadRows<Tile>& rows, KeyRange any, LostRows lost) {
  const ForwardCall<typename Tile::Element>& call = params.call;
  const BlockShape& shape = call.shape;
  const std::int64_t kv_head = rows.head / (shape.q_heads / shape.kv_heads);
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (lost.are_lost[i]) begin_state(call, rows, i);
  }
  RINGLAB_KEEP_LOOP
  for (int key = any.first; key < any.last; ++key) {
    const std::int64_t number = kv_head * shape.keys + key;
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float product = score_of(call, rows, i, call.k + number * shape.head_dim);
      const int column = key - first_column();
      if (!lost.are_lost[i]) continue;
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
  const auto work = [&](TilePlace place, KeyWalk walk, const KeyRange* sees) {
    walk = uniform_walk(walk);
    const bool state_stays = !params.call.begins && !params.call.finishes;
    if (walk.blocks == 0 && state_stays) return;  // as in half of the hops of a zigzag ring
    begin_rows(params.call, place, sees, consumer.number, rows);
    if (walk.blocks > 0) {
      walk_keys(consumer, rows, walk);
      const bool all_see_all = walk.full_end - walk.full_begin == walk.blocks;
      const LostRows lost = lost_rows(rows, all_see_all);
      if (any_lane(lost.are_lost[0] || lost.are_lost[1])) {
        redo_rows(params, rows, params.call.mask.tiles[place.tile].any, lost);
      }
    }
    end_rows(params, shared.out(thread_index() / 32 - 4), rows);
  };
  take_tiles<Tile>(params, shared, false, work);
  if (Tile::kTactics.stores_boxes && thread_index() % 32 == 0) wait_for_boxes<0>();
  if (consumer.number == 0) consumer.take_turn();  // what the last consumer passed on
}

template <class Tile>
RINGLAB_KERNEL_CODE void sync_blocks() {
  if constexpr (Tile::kCluster > 1) {
    sync_cluster();
  } else {
    sync_block();
  }
}

/// A block of kThreads threads and kHopperSharedBytes per multiprocessor, or fewer blocks.
template <class Tile>
RINGLAB_KERNEL_CODE void forward_hopper_tiles(const HopperParams<typename Tile::Element>& params) {
  const HopperShared<Tile> shared = lay_out_shared<Tile>();
  if (thread_index() == 0) init_hopper_barriers<Tile>(shared.barriers);
  sync_blocks<Tile>();  // nobody waits at a barrier that is not there yet
  if (thread_index() < 128) {
    give_registers<Tile::kProducerRegisters>();
    if (thread_index() == 0) produce<Tile>(params, shared);
    if (Tile::kTactics.tells_tiles && thread_index() / 32 == 1) tell_tiles<Tile>(params, shared);
  } else {
    take_registers<Tile::kConsumerRegisters>();
    consume<Tile>(params, shared);
  }
  if constexpr (Tile::kCluster > 1) sync_cluster();  // nobody copies to a block that has ended
}

}  // namespace ringlab::cuda
