// One tile of 48 queries against one block of keys, in bf16 products with f32 sums.
//
// Lane i belongs to query i of the tile, as in forward_tile-inl.h. Everything that is multiplied
// comes in pairs: a 32-bit lane holds two neighbours along the sum, channels 2t and 2t+1 of a query
// or of a key for the scores, keys 2t and 2t+1 for the output, the even one in the low half.
//
// VDPBF16PS adds a pair to an f32 lane as two fused multiply-adds, the high halves first, each
// rounded to nearest even whatever the rounding mode is; subnormal operands, sums included, are
// read as zero and subnormal results are written as zero (the pseudo-code of AMD's and Intel's
// manuals; bf16_dot_test.cpp compares). A product of a subnormal q or k is therefore lost here
// however large the other factor is, and callers of score() add it.
#pragma once

#include <cstdint>

namespace ringlab::cpu::bf16_dot {

inline constexpr int kVectors = 3;                     ///< of 16 lanes
inline constexpr std::int64_t kWidth = 16 * kVectors;  ///< queries of a tile
inline constexpr std::int64_t kKeysAtOnce = 8;         ///< rows of a full register tile
inline constexpr std::int64_t kPanel = 8;              ///< channels of V that lie together

/// Queries of a tile and `count` keys.
struct Scoring {
  const std::uint32_t* queries;  ///< (pairs of channels, lanes)
  const std::uint16_t* keys;     ///< (count, pairs of channels), dense
  std::int64_t pairs;
  std::int64_t count;
  float* scores;  ///< (count, lanes), written: q·k without the scale
  float* tops;    ///< (lanes), written: the largest of each lane; null where nobody asks
};
void score(const Scoring& job);

/// Rows first … last-1 of a run, per lane.
struct LaneBounds {
  const std::int32_t* first;
  const std::int32_t* last;
};
/// Hides the scores of keys that a lane does not see; `row` is that of the first of `count`.
void hide_unseen(const LaneBounds& seen, std::int64_t row, std::int64_t count, float* scores);
/// Finds the largest score of each lane once more.
void find_tops(const float* scores, std::int64_t count, float* tops);

/// Running states of a tile and the block's scores that they are about to take in.
struct Weighing {
  float* scores;       ///< (count, lanes); becomes weights: (count / 2, lanes) pairs of bf16
  std::int64_t count;  ///< even
  const float* tops;   ///< (lanes)
  float scale;         ///< of scores, in powers of two; positive
  float* row_max;      ///< (lanes)
  float* row_sum;      ///< (lanes); adds the weights before they are rounded to bf16
  float* keep;         ///< (lanes), written: the factor for what was summed before
};
/// Turns scores into weights; true when some `keep` is not 1. The weight of a score s is 2^(scale ·
/// s - row_max), within kWeightError, and exactly 1 at the maximum.
bool weigh(const Weighing& job);
/// Relative error, before the rounding to bf16: the polynomial alone is 1.02e-4 off at most. The
/// factor `keep` is within 2^-22.
inline constexpr double kWeightError = 0x1p-13;

/// acc = keep · acc + weights times values; keep may be null for ones.
struct Adding {
  const std::uint32_t* weights;  ///< (pairs of keys, lanes)
  std::int64_t pairs;
  const std::uint32_t* values;  ///< the first pair of each panel: (panel, …, kPanel)
  std::int64_t panel_stride;
  std::int64_t panels;
  const float* keep;
  float* acc;  ///< (panels · kPanel, lanes)
};
void add_weighted(const Adding& job);

/// Rows of V as panels of pairs of rows.
struct Packing {
  const std::uint16_t* values;  ///< (rows, channels), dense
  std::int64_t rows, channels;
  std::uint32_t* panels;      ///< (panel, pair of rows, kPanel); filled up with zeros
  std::int64_t panel_stride;  ///< at least kPanel times the pairs
};
/// Packs the rows; true when all numbers are finite.
bool pack_values(const Packing& job);

/// Rows of 32-bit words, `count` of them and dense, that have a lane each: (words, lanes). Lanes
/// beyond the rows repeat the last, or are left out on the way back.
void turn_into_lanes(const void* rows, std::int64_t count, std::int64_t words, void* lanes);
void turn_into_rows(const float* lanes, std::int64_t count, std::int64_t words, float* rows);
/// turn_into_rows() that adds to the rows.
void add_to_rows(const float* lanes, std::int64_t count, std::int64_t words, float* rows);

/// True when any of the numbers is subnormal.
bool has_subnormal(const std::uint16_t* values, std::int64_t count);

/// out[i] = 2^x[i] as a weight is computed, before the rounding to bf16; count is a multiple of 16.
void weights_of(const float* x, std::int64_t count, float* out);

}  // namespace ringlab::cpu::bf16_dot
