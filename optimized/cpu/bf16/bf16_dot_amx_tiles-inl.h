// The products of the bf16 kernels for anything that multiplies matrices as AMX does.
//
// Tiles has eight registers of 16 rows of 16 lanes of 32 bits: load<r>(from, stride) and
// store<r>(to, stride) with strides in bytes, zero<r>(), and dot<c, a, b>(), which is TDPBF16PS.
#pragma once

#include <algorithm>
#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_backward_tile.h"
#include "optimized/cpu/bf16/bf16_dot_tile.h"

namespace ringlab::cpu::bf16_dot {

inline constexpr std::int64_t kSide = 16;            ///< rows and lanes of a matrix
inline constexpr std::int64_t kKeyStep = 2 * kSide;  ///< keys whose weights are one matrix
inline constexpr std::int64_t kLaneBytes = 4 * kWidth;
static_assert(kVectors == 3);

/// Registers 0 to 2, the sums of all lanes, += a matrix times the rows of `lanes`.
template <class Tiles>
inline void add_products(Tiles& tiles, const void* matrix, std::int64_t stride,
                         const std::uint32_t* lanes) {
  tiles.template load<3>(matrix, stride);
  tiles.template load<4>(lanes, kLaneBytes);
  tiles.template dot<0, 3, 4>();
  tiles.template load<5>(lanes + kSide, kLaneBytes);
  tiles.template dot<1, 3, 5>();
  tiles.template load<6>(lanes + 2 * kSide, kLaneBytes);
  tiles.template dot<2, 3, 6>();
}
/// Stores registers 0 to 2, the sums of all lanes: (kSide, lanes).
template <class Tiles>
inline void store_sums(Tiles& tiles, float* to) {
  tiles.template store<0>(to, kLaneBytes);
  tiles.template store<1>(to + kSide, kLaneBytes);
  tiles.template store<2>(to + 2 * kSide, kLaneBytes);
}

/// Scores of kSide keys from row `row` on; rows after the last key are zeros.
template <class Tiles>
inline void score_side(Tiles& tiles, const Scoring& job, std::int64_t row) {
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  const std::uint16_t* keys = job.keys + row * 2 * job.pairs;
  const std::uint32_t* queries = job.queries;
  for (std::int64_t t = 0; t < job.pairs; t += kSide) {
    add_products(tiles, keys, 4 * job.pairs, queries);
    keys += 2 * kSide;
    queries += kSide * kWidth;
  }
  store_sums(tiles, job.scores + row * kWidth);
}

/// Rescales the sums of kSide channels: (kSide, lanes).
inline void keep_panel(const float* keep, float* acc) {
  for (std::int64_t c = 0; c < kSide; ++c) {
    for (std::int64_t lane = 0; lane < kWidth; ++lane) acc[c * kWidth + lane] *= keep[lane];
  }
}

/// add_weighted() of panels of kSide channels whose pairs of keys are matrices: (panel, kSide pairs,
/// channel, pair).
template <class Tiles>
void add_weighted_in_tiles(Tiles& tiles, const Adding& job) {
  if (job.keep) keep_panel(job.keep, job.acc);
  for (std::int64_t panel = 0; panel < job.panels; ++panel) {
    float* const acc = job.acc + panel * kSide * kWidth;
    tiles.template load<0>(acc, kLaneBytes);
    tiles.template load<1>(acc + kSide, kLaneBytes);
    tiles.template load<2>(acc + 2 * kSide, kLaneBytes);
    // Rescales one panel ahead, because sums that were just stored are slow to read.
    if (job.keep && panel + 1 < job.panels) keep_panel(job.keep, acc + kSide * kWidth);
    const std::uint32_t* values = job.values + panel * job.panel_stride;
    const std::uint32_t* weights = job.weights;
    for (std::int64_t t = 0; t < job.pairs; t += kSide) {
      add_products(tiles, values, 4 * kSide, weights);
      values += kSide * kSide;
      weights += kSide * kWidth;
    }
    store_sums(tiles, acc);
  }
}

/// Sums of kSide keys and channels, or fewer of either, over all pairs of queries.
template <class Tiles>
void add_square_in_tiles(Tiles& tiles, const Gathering& job, std::int64_t key,
                         std::int64_t channel) {
  const std::int64_t keys = std::min(kSide, job.keys - key);
  const std::int64_t channels = std::min(kSide, job.channels - channel);
  const bool whole = keys == kSide && channels == kSide;
  float* const sums = job.sums + key * job.channels + channel;
  float part[kSide * kSide] = {};  // of a square that is not whole: nothing beside it is touched
  for (std::int64_t i = 0; !whole && i < keys; ++i) {
    std::copy_n(sums + i * job.channels, channels, part + i * kSide);
  }
  float* const at = whole ? sums : part;
  const std::int64_t stride = 4 * (whole ? job.channels : kSide);
  tiles.template load<0>(at, stride);
  const std::uint16_t* weights = job.weights + key * job.weight_stride;
  const std::uint32_t* rows =
      job.rows + channel / kWidePanel * job.panel_stride + channel % kWidePanel;
  for (std::int64_t t = 0; t < job.pairs; t += kSide) {
    tiles.template load<3>(weights, 2 * job.weight_stride);
    tiles.template load<4>(rows, 4 * kWidePanel);
    tiles.template dot<0, 3, 4>();
    weights += 2 * kSide;
    rows += kSide * kWidePanel;
  }
  tiles.template store<0>(at, stride);
  for (std::int64_t i = 0; !whole && i < keys; ++i) {
    std::copy_n(part + i * kSide, channels, sums + i * job.channels);
  }
}

/// add_over_queries(); weights and rows of queries are filled up with zeros to whole matrices.
template <class Tiles>
void add_over_queries_in_tiles(Tiles& tiles, const Gathering& job) {
  for (std::int64_t channel = 0; channel < job.channels; channel += kSide) {
    for (std::int64_t key = 0; key < job.keys; key += kSide) {
      add_square_in_tiles(tiles, job, key, channel);
    }
  }
}

}  // namespace ringlab::cpu::bf16_dot
