// The forward pass of one chunk on tensor cores of any GPU since sm_80: the running softmax of
// FlashAttention-2 (Dao 2023, Alg. 1) with carried state.
//
// A block of four warps has 64 queries of one head, 16 in each warp, and goes through the keys that
// its tile sees in blocks of kKeys:
//
//   shared memory   | Q (64) | K (kKeys) stage 0, 1 | V (kKeys) stage 0, 1 |
//
//   wait for K(b) → copy K(b+1), V(b+1) into the other stage → S = Q Kᵀ → softmax
//                 → wait for V(b) → O += P V
//
// S, P and O stay in registers: an accumulator of S is, packed, an operand of P V.
// Names: g = lane / 4 is the lane's first row of the warp's 16 and g + 8 its second; t = lane % 4.
//
// NaN and infinity: a row is changed only by the keys and values that it sees, whatever the others
// hold. Scores are chosen by the mask, not multiplied; in blocks that not every row sees, values
// that are not finite are taken out of the product (0 · inf would be NaN) and added to the rows
// that see them.
#pragma once

#include <cstdint>

#include "optimized/cuda/portable/warp_tiles.cuh"

namespace ringlab::cuda {

inline constexpr int kForwardThreads = 128;
inline constexpr int kForwardQueries = 64;

/// The layout of shared memory, for kChannels padded channels of K and of V.
template <int kChannels>
struct ForwardTiles {
  static constexpr int kKeys = kChannels > 128 ? 32 : 64;
  static constexpr int kStages = 2;
  static constexpr int kQueryBytes = kForwardQueries * kChannels * 2;
  static constexpr int kStageBytes = kKeys * kChannels * 2;
  static constexpr int kNotFinitePlace = kQueryBytes + 2 * kStages * kStageBytes;
  static constexpr int kSharedBytes = kNotFinitePlace + kUnitBytes;
  using Tile = SharedTile<kChannels>;

  RINGLAB_KERNEL_CODE static Tile q() { return {shared_memory()}; }
  RINGLAB_KERNEL_CODE static Tile k(int block) {
    return {shared_memory() + kQueryBytes + block % kStages * kStageBytes};
  }
  RINGLAB_KERNEL_CODE static Tile v(int block) {
    return {shared_memory() + kQueryBytes + (kStages + block % kStages) * kStageBytes};
  }
  /// The last block in which a value was not finite.
  RINGLAB_KERNEL_CODE static int* not_finite() {
    return reinterpret_cast<int*>(shared_memory() + kNotFinitePlace);
  }
};

/// The queries of the head that this block has. Under causal masks late tiles see most keys, so
/// they begin first.
struct ForwardPlace {
  int tile;
  int first;          ///< query
  std::int64_t head;  ///< of batch · q_heads
  std::int64_t kv_head;
};
RINGLAB_KERNEL_CODE ForwardPlace forward_place(const BlockShape& shape, int block) {
  const int heads = shape.batch * shape.q_heads;
  const int tiles = (shape.queries + kForwardQueries - 1) / kForwardQueries;
  const int tile = tiles - 1 - block / heads;
  const int head = block % heads;
  return {tile, tile * kForwardQueries, head, head / (shape.q_heads / shape.kv_heads)};
}

/// A lane's part of its two rows.
template <int kChannels>
struct ForwardRows {
  int query[2];  ///< in the chunk of queries
  KeyRange sees[2];
  float max[2];  ///< log2 e times the largest score
  float sum[2];  ///< this lane's share
  float acc[kChannels / kUnit][4];
};

template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void begin_rows(ForwardRows<kChannels>& rows, const ForwardCall<Element>& call,
                                    const ForwardPlace& place) {
  const int t = lane_index() % 4;
  clear(rows.acc);
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    rows.query[i] = place.first + warp_index() * kFragmentRows + lane_index() / 4 + 8 * i;
    rows.sees[i] = {0, 0};
    rows.max[i] = kEmptyRowMax<float>;
    rows.sum[i] = 0;
    if (rows.query[i] >= call.shape.queries) continue;
    rows.sees[i] = call.mask.rows[rows.query[i]];
    if (call.begins) continue;
    const std::int64_t row = place.head * call.shape.queries + rows.query[i];
    rows.max[i] = call.running.states[row].row_max;
    if (t == 0) rows.sum[i] = call.running.states[row].row_sum;
    RINGLAB_UNROLL
    for (int n = 0; n < kChannels / kUnit; ++n) {
      const int channel = n * kUnit + 2 * t;
      if (channel >= call.shape.v_dim) continue;
      const auto pair =
          *reinterpret_cast<const FloatPair*>(call.running.accs + row * call.shape.v_dim + channel);
      rows.acc[n][2 * i] = pair.low;
      rows.acc[n][2 * i + 1] = pair.high;
    }
  }
}

/// Turns scores into exponents in base 2, and those of keys that are not seen into -inf.
template <BlockCoverage kCoverage, int kChannels, int kCount>
RINGLAB_KERNEL_CODE void scale_scores(float (&s)[kCount][4], const ForwardRows<kChannels>& rows,
                                      float scale, int first_key) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + n * kUnit + lane_index() % 4 * 2 + i % 2;
      const bool seen = kCoverage == BlockCoverage::full || contains(rows.sees[i / 2], key);
      s[n][i] = seen ? s[n][i] * scale : kEmptyRowMax<float>;
    }
  }
}

/// The largest of `most` and row i of the warp's scores. It ignores NaN, which shows in sums.
template <int kCount>
RINGLAB_KERNEL_CODE float row_max(const float (&s)[kCount][4], int i, float most) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    most = fmaxf(most, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
  }
  most = fmaxf(most, shuffle_xor(most, 1));
  return fmaxf(most, shuffle_xor(most, 2));
}

/// Turns scores into weights, and brings the running state to the new maxima. Rows that have seen
/// nothing stay empty: -inf is never subtracted from -inf.
template <int kChannels, int kCount>
RINGLAB_KERNEL_CODE void to_weights(float (&s)[kCount][4], ForwardRows<kChannels>& rows) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float top = row_max(s, i, rows.max[i]);
    const float shift = top == kEmptyRowMax<float> ? 0.0f : top;
    const float factor = exp2_approx(rows.max[i] - shift);
    rows.max[i] = top;
    rows.sum[i] *= factor;
    RINGLAB_UNROLL
    for (int n = 0; n < kChannels / kUnit; ++n) {
      rows.acc[n][2 * i] *= factor;
      rows.acc[n][2 * i + 1] *= factor;
    }
    RINGLAB_UNROLL
    for (int n = 0; n < kCount; ++n) {
      s[n][2 * i] = exp2_approx(s[n][2 * i] - shift);
      s[n][2 * i + 1] = exp2_approx(s[n][2 * i + 1] - shift);
      rows.sum[i] += s[n][2 * i] + s[n][2 * i + 1];
    }
  }
}

/// O += P V. Two accumulators of S beside each other, packed, are the left operand for 16 keys.
template <class Element, int kChannels, int kCount>
RINGLAB_KERNEL_CODE void add_values(ForwardRows<kChannels>& rows, const float (&p)[kCount][4],
                                    SharedTile<kChannels> v) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; n += 2) {
    const std::uint32_t weights[4] = {
        pack<Element>(p[n][0], p[n][1]), pack<Element>(p[n][2], p[n][3]),
        pack<Element>(p[n + 1][0], p[n + 1][1]), pack<Element>(p[n + 1][2], p[n + 1][3])};
    add_weighted_rows<Element>(rows.acc, weights, v, n * kUnit, 0);
  }
}

/// Adds values of these keys that are not finite to the rows that see them. Their weights are above
/// 0, so that the sum becomes infinite or NaN as the values say. Rare, and slow.
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void add_not_finite(ForwardRows<kChannels>& rows, HeadRows<Element> v,
                                        KeyRange keys) {
  for (int key = keys.first; key < keys.last; ++key) {
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (!contains(rows.sees[i / 2], key)) continue;
      RINGLAB_UNROLL
      for (int n = 0; n < kChannels / kUnit; ++n) {
        const int channel = n * kUnit + lane_index() % 4 * 2 + i % 2;
        if (channel >= v.channels) continue;
        const float x = widen(v.data[static_cast<std::int64_t>(key) * v.channels + channel]);
        if (!(x - x == 0)) rows.acc[n][i] += x;
      }
    }
  }
}

/// The blocks of keys that a tile of queries goes through: kKeys each, from the first one that any
/// row sees on. Blocks full_first … full_last - 1 are seen by every row.
struct KeyBlocks {
  KeyRange any;
  int count;
  int full_first;
  int full_last;
};
template <int kKeys>
RINGLAB_KERNEL_CODE KeyBlocks key_blocks(const TileKeys& keys) {
  const int begin = keys.any.first;
  const int count = keys.any.last > begin ? (keys.any.last - begin + kKeys - 1) / kKeys : 0;
  const int before = keys.all.first > begin ? keys.all.first - begin : 0;
  const int first = (before + kKeys - 1) / kKeys;
  const int last = keys.all.last > begin ? (keys.all.last - begin) / kKeys : 0;
  if (first >= last) return {keys.any, count, count, count};
  return {keys.any, count, first, last};
}

/// K and V of one head on their way through shared memory; each a group of copies.
template <class Element, int kChannels>
struct KeyStages {
  using Tiles = ForwardTiles<kChannels>;
  HeadRows<Element> k, v;
  KeyBlocks blocks;

  RINGLAB_KERNEL_CODE int first_key(int block) const {
    return blocks.any.first + block * Tiles::kKeys;
  }
  /// Commits an empty group past the last block, so that counting groups stays right.
  RINGLAB_KERNEL_CODE void fetch(int block) const {
    const bool any = block < blocks.count;
    if (any) {
      copy_tile<Tiles::kKeys, kForwardThreads>(Tiles::k(block), k, first_key(block), blocks.any);
    }
    commit_copies();
    if (any) {
      copy_tile<Tiles::kKeys, kForwardThreads>(Tiles::v(block), v, first_key(block), blocks.any);
    }
    commit_copies();
  }
  /// The keys of a block that some row sees.
  RINGLAB_KERNEL_CODE KeyRange keys(int block) const {
    const int last = first_key(block) + Tiles::kKeys;
    return {first_key(block), last < blocks.any.last ? last : blocks.any.last};
  }
};

/// The queries of this block against the keys of blocks first … last - 1, of which K and V of the
/// first are under way.
template <BlockCoverage kCoverage, class Element, int kChannels>
RINGLAB_KERNEL_CODE void attend(ForwardRows<kChannels>& rows,
                                const KeyStages<Element, kChannels>& stages, float scale, int first,
                                int last) {
  using Tiles = ForwardTiles<kChannels>;
  for (int block = first; block < last; ++block) {
    wait_for_copies<1>();  // all but V(block)
    sync_block();          // everybody's part of K is there, and everybody is done with block - 1
    stages.fetch(block + 1);
    float s[Tiles::kKeys / kUnit][4];
    multiply_tiles<Element>(s, Tiles::q(), warp_index() * kFragmentRows, Tiles::k(block), 0);
    scale_scores<kCoverage>(s, rows, scale, stages.first_key(block));
    to_weights(s, rows);
    wait_for_copies<2>();  // all but K(block + 1) and V(block + 1)
    if constexpr (kCoverage == BlockCoverage::partial) {
      if (clear_not_finite<Element, Tiles::kKeys, kForwardThreads>(Tiles::v(block))) {
        *Tiles::not_finite() = block;
      }
    }
    sync_block();
    add_values<Element>(rows, s, Tiles::v(block));
    if constexpr (kCoverage == BlockCoverage::partial) {
      // The word is written again behind the next barrier at the earliest.
      if (*Tiles::not_finite() == block) add_not_finite(rows, stages.v, stages.keys(block));
    }
  }
}

/// Leaves the running state in memory.
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void leave_row(const ForwardRows<kChannels>& rows, int i, float sum,
                                   const ForwardCall<Element>& call, std::int64_t row) {
  const int t = lane_index() % 4;
  if (t == 0) call.running.states[row] = {rows.max[i], sum};
  RINGLAB_UNROLL
  for (int n = 0; n < kChannels / kUnit; ++n) {
    const int channel = n * kUnit + 2 * t;
    if (channel >= call.shape.v_dim) continue;
    *reinterpret_cast<FloatPair*>(call.running.accs + row * call.shape.v_dim + channel) = {
        rows.acc[n][2 * i], rows.acc[n][2 * i + 1]};
  }
}

template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void finish_row(const ForwardRows<kChannels>& rows, int i, float sum,
                                    const ForwardCall<Element>& call, std::int64_t row) {
  const int t = lane_index() % 4;
  if (t == 0) call.lse[row] = finished_lse(rows.max[i], sum);
  const float divisor = finished_divisor(sum);
  RINGLAB_UNROLL
  for (int n = 0; n < kChannels / kUnit; ++n) {
    const int channel = n * kUnit + 2 * t;
    if (channel >= call.shape.v_dim) continue;
    *reinterpret_cast<ElementPair<Element>*>(call.out + row * call.shape.v_dim + channel) =
        round_pair<Element>(rows.acc[n][2 * i] / divisor, rows.acc[n][2 * i + 1] / divisor);
  }
}

template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void end_rows(const ForwardRows<kChannels>& rows,
                                  const ForwardCall<Element>& call, const ForwardPlace& place) {
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    float sum = rows.sum[i];
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    if (rows.query[i] >= call.shape.queries) continue;
    const std::int64_t row = place.head * call.shape.queries + rows.query[i];
    if (call.finishes) {
      finish_row(rows, i, sum, call, row);
    } else {
      leave_row(rows, i, sum, call, row);
    }
  }
}

/// A block of kForwardThreads threads; there are batch · q_heads · ceil(queries / 64).
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE void forward_portable_block(const ForwardCall<Element>& call) {
  using Tiles = ForwardTiles<kChannels>;
  const BlockShape& shape = call.shape;
  const ForwardPlace place = forward_place(shape, block_index());
  const std::int64_t keys = place.kv_head * shape.keys;
  const KeyStages<Element, kChannels> stages{{call.k + keys * shape.head_dim, shape.head_dim},
                                             {call.v + keys * shape.v_dim, shape.v_dim},
                                             key_blocks<Tiles::kKeys>(call.mask.tiles[place.tile])};
  const HeadRows<Element> q{call.q + place.head * shape.queries * shape.head_dim, shape.head_dim};
  // Q travels in the group of the first K.
  copy_tile<kForwardQueries, kForwardThreads>(Tiles::q(), q, place.first, {0, shape.queries});
  stages.fetch(0);
  if (thread_index() == 0) *Tiles::not_finite() = -1;
  ForwardRows<kChannels> rows;
  begin_rows(rows, call, place);
  const KeyBlocks& blocks = stages.blocks;
  attend<BlockCoverage::partial>(rows, stages, call.scale, 0, blocks.full_first);
  attend<BlockCoverage::full>(rows, stages, call.scale, blocks.full_first, blocks.full_last);
  attend<BlockCoverage::partial>(rows, stages, call.scale, blocks.full_last, blocks.count);
  wait_for_copies<0>();  // nothing may be under way when the block ends
  end_rows(rows, call, place);
}

}  // namespace ringlab::cuda
