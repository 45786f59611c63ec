// The backward pass of one tile of 48 queries against one block of keys, in bf16 products.
//
// S and dP come from score(), lanes along queries. P and dS are rounded to bf16 once and kept in
// two layouts: as rows, where two neighbouring queries are a pair along the sums of dV and dK, and
// dS in pairs of keys besides, for dQ, which add_weighted() sums.
#pragma once

#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_tile.h"

namespace ringlab::cpu::bf16_dot {

/// P and dS of some keys, rounded to bf16: a row for each key, side by side the queries.
struct WeightRows {
  std::uint16_t* p;
  std::uint16_t* ds;
  std::int64_t stride;  ///< a multiple of 16
};

/// Scores and dP of some keys and one tile.
struct Differentiating {
  const float* scores;  ///< (count, lanes): q·k without the scale; -inf where it is hidden
  const float* dp;      ///< (count, lanes): dO·v
  std::int64_t count;   ///< even
  float scale;          ///< of scores, in powers of two
  const float* lse;     ///< (lanes), in powers of two
  const float* delta;   ///< (lanes)
  std::int64_t lanes;   ///< that are queries: P and dS of the others are 0
  WeightRows rows;      ///< written, from the tile's first query on
  std::uint32_t* ds;    ///< (count / 2, lanes), written: dS again, in pairs of keys
};
/// P = 2^(scale · score - lse), within kWeightError before it is rounded, and dS = P (dP - delta)
/// from the P that is not rounded; both 0 for keys that are not seen, whatever lse and dP are.
void differentiate(const Differentiating& job);

inline constexpr std::int64_t kWidePanel = 64;  ///< channels that lie together
inline constexpr std::int64_t kTilePairs = kWidth / 2;

/// Rows of queries, q or dO, as panels of pairs of rows; those after the last are zeros.
struct RowPacking {
  const std::uint16_t* values;  ///< (rows, channels), dense
  std::int64_t rows, channels;
  std::int64_t pairs;         ///< of rows to write
  std::uint32_t* panels;      ///< (panel, pair of rows, kWidePanel)
  std::int64_t panel_stride;  ///< at least kWidePanel times the pairs
};
/// Packs the rows; true when all numbers are finite.
bool pack_rows(const RowPacking& job);

/// sums += weights times rows, along queries.
struct Gathering {
  const std::uint16_t* weights;  ///< of the first key and pair of queries
  std::int64_t weight_stride;
  std::int64_t keys;
  const std::uint32_t* rows;  ///< of the first pair: (panel, pair of rows, kWidePanel)
  std::int64_t panel_stride;
  std::int64_t pairs;
  std::int64_t channels;
  float* sums;  ///< (keys, channels), dense
};
void add_over_queries(const Gathering& job);

}  // namespace ringlab::cpu::bf16_dot
