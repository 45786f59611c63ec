// Common to the two backward kernels: the shares of four warps in tiles of queries and keys, and
// the step from Q, K, V, dO to P and dS.
//
// P and dS go through shared memory in the type of the inputs, (queries, keys): from there any warp
// reads either of them, straight or transposed, as an operand of dV = Pᵀ dO, dK = dSᵀ Q, dQ = dS K
// (FlashAttention-2, Dao 2023, Alg. 2).
//
// NaN and infinity: a gradient is changed only by the pairs of query and key that see each other,
// whatever other rows hold. P and dS are chosen by the mask, not multiplied; right operands of
// pairs of tiles that are not seen in full lose NaN and infinity (0 · inf would be NaN). NaN in a
// query, or in keys and values that it sees, still makes its gradients NaN, because its lse or
// delta is. (A key of -inf scores, whose weight is 0, counts as if its infinite channels were 0.)
#pragma once

#include <cstdint>

#include "optimized/cuda/portable/warp_tiles.cuh"

namespace ringlab::cuda {

inline constexpr int kBackwardThreads = 128;
inline constexpr int kBackwardWarps = kBackwardThreads / kWarpLanes;
inline constexpr float kLog2e = 1.44269504088896341f;

/// The sizes for kChannels padded channels of K and of V.
template <int kChannels>
struct BackwardTiles {
  static constexpr int kQueries = kChannels > 64 ? 32 : 64;
  static constexpr int kKeys = kChannels > 128 ? 32 : 64;
  /// Stages of tiles that come and go; tiles that stay have one.
  static constexpr int kStages = kChannels > 128 ? 1 : 2;
  static constexpr int kQueryBytes = kQueries * kChannels * 2;
  static constexpr int kKeyBytes = kKeys * kChannels * 2;
  static constexpr int kPairBytes = kQueries * kKeys * 2;
  using Tile = SharedTile<kChannels>;
  using PairTile = SharedTile<kKeys>;  ///< (queries, keys)

  /// Rows of warps in S: 16 queries each, whose warps have their own keys.
  static constexpr int kRowWarps = kQueries / kFragmentRows;
  static constexpr int kWarpKeys = kKeys * kRowWarps / kBackwardWarps;
  RINGLAB_KERNEL_CODE static int warp_query() { return warp_index() % kRowWarps * kFragmentRows; }
  RINGLAB_KERNEL_CODE static int warp_key() { return warp_index() / kRowWarps * kWarpKeys; }
  /// Channels of dQ of each warp; warps share queries as in S.
  static constexpr int kQueryChannels = kChannels * kRowWarps / kBackwardWarps;
  RINGLAB_KERNEL_CODE static int warp_query_channel() {
    return warp_index() / kRowWarps * kQueryChannels;
  }
};

/// A lane's facts about its two rows of a tile of queries.
struct BackwardRows {
  int query[2];
  KeyRange sees[2];
  float lse[2];  ///< in base 2; +inf for rows that see nothing or are none: their weights are 0
  float delta[2];
  float taint[2];  ///< NaN where delta is not finite, else 0: dout may have been the reason
};
template <class Element>
RINGLAB_KERNEL_CODE BackwardRows load_rows(const BackwardCall<Element>& call, std::int64_t head,
                                           int first_query) {
  BackwardRows rows;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    rows.query[i] = first_query + lane_index() / 4 + 8 * i;
    rows.sees[i] = {0, 0};
    rows.lse[i] = -kEmptyRowMax<float>;
    rows.delta[i] = rows.taint[i] = 0;
    if (rows.query[i] >= call.shape.queries) continue;
    const std::int64_t row = head * call.shape.queries + rows.query[i];
    rows.sees[i] = call.mask.rows[rows.query[i]];
    rows.delta[i] = call.delta[row];
    rows.taint[i] = rows.delta[i] - rows.delta[i];
    if (call.lse[row] != kEmptyRowMax<float>) rows.lse[i] = call.lse[row] * kLog2e;
  }
  return rows;
}

/// A lane's share of P and dS of one pair of tiles: kCount · 8 keys.
template <int kCount>
struct PairGradients {
  float p[kCount][4];   ///< before: scores
  float ds[kCount][4];  ///< before: dP
};

/// Turns S into P = exp(scale S - lse), and dP into dS = P (dP - delta). The mask selects and does
/// not multiply: K and V of keys that are not seen may hold anything.
template <int kCount>
RINGLAB_KERNEL_CODE void to_gradients(PairGradients<kCount>& pair, const BackwardRows& rows,
                                      float scale, KeyRange keys) {
  const int lane_key = keys.first + lane_index() % 4 * 2;
  const bool all = covers(rows.sees[0], keys.first, keys.last - keys.first) &&
                   covers(rows.sees[1], keys.first, keys.last - keys.first);
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      const bool seen = all || contains(rows.sees[i / 2], lane_key + n * kUnit + i % 2);
      const float p = exp2_approx(pair.p[n][i] * scale - rows.lse[i / 2]);
      const float ds = p * (pair.ds[n][i] - rows.delta[i / 2]);
      pair.p[n][i] = seen ? p + rows.taint[i / 2] : 0;
      pair.ds[n][i] = seen ? ds : 0;
    }
  }
}

/// Stores a lane's share, rounded, in a tile (queries, keys).
template <class Element, int kKeys, int kCount>
RINGLAB_KERNEL_CODE void store_pair(SharedTile<kKeys> tile, const float (&values)[kCount][4],
                                    int query, int key) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) {
      std::byte* to =
          tile.at(query + lane_index() / 4 + 8 * i, key + n * kUnit + lane_index() % 4 * 2);
      *reinterpret_cast<ElementPair<Element>*>(to) =
          round_pair<Element>(values[n][2 * i], values[n][2 * i + 1]);
    }
  }
}

/// The tiles in shared memory of one step, a tile of queries and a tile of keys.
template <int kChannels>
struct MeetingTiles {
  SharedTile<kChannels> q, dout, k, v;
  int first_key;  ///< of the chunk
};

/// Computes this warp's share of P and dS.
template <class Element, int kChannels>
RINGLAB_KERNEL_CODE auto pair_gradients(const MeetingTiles<kChannels>& tiles,
                                        const BackwardRows& rows, float scale) {
  using Tiles = BackwardTiles<kChannels>;
  PairGradients<Tiles::kWarpKeys / kUnit> pair;
  const int query = Tiles::warp_query(), key = Tiles::warp_key();
  multiply_tiles<Element>(pair.p, tiles.q, query, tiles.k, key);
  multiply_tiles<Element>(pair.ds, tiles.dout, query, tiles.v, key);
  const int first = tiles.first_key + key;
  to_gradients(pair, rows, scale, {first, first + Tiles::kWarpKeys});
  return pair;
}

/// d (16 queries, 8 · kCount channels) += dS K for this warp's queries, channels channel ….
template <class Element, int kChannels, int kKeys, int kCount>
RINGLAB_KERNEL_CODE void add_query_gradients(float (&d)[kCount][4], SharedTile<kKeys> ds,
                                             SharedTile<kChannels> k, int channel) {
  RINGLAB_UNROLL
  for (int key = 0; key < kKeys; key += kFragmentRows) {
    std::uint32_t left[4];
    load_left(left, ds, BackwardTiles<kChannels>::warp_query(), key);
    add_weighted_rows<Element>(d, left, k, key, channel);
  }
}

/// Adds to two numbers in memory to which no other thread adds.
RINGLAB_KERNEL_CODE void add_pair(float* to, float low, float high) {
  auto* pair = reinterpret_cast<FloatPair*>(to);
  *pair = {pair->low + low, pair->high + high};
}

/// The heads of a call as rows in memory.
template <class Element>
RINGLAB_KERNEL_CODE HeadRows<Element> head_rows(const Element* tensor, std::int64_t head,
                                                std::int32_t rows, std::int32_t channels) {
  return {tensor + head * rows * channels, channels};
}

}  // namespace ringlab::cuda
