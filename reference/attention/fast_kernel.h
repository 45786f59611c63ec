// The vector part of fast_forward: one tile of queries, one per lane, against one block of keys.
//
// Weights are powers of two, 2^{s - shift} with s in base-2 units, so that a whole power costs no
// multiplication. Each block of keys is summed apart and then added to what the tile has, which
// keeps chains of additions short; fast_error.h counts their roundings.
#pragma once

#include <cstdint>

namespace ringlab::fast {

/// Keys of a block, and the grain in which parts of one are computed.
inline constexpr std::int64_t kBlockKeys = 64;
inline constexpr std::int64_t kGrain = 8;
/// |2^x computed - 2^x| <= this · 2^x where the power is not flushed.
inline constexpr double kPowerError = 0x1p-51;
/// Powers below 2^kLeastPower are flushed to zero.
inline constexpr double kLeastPower = -1021;

/// `count` rounded up to whole grains.
constexpr std::int64_t whole_grains(std::int64_t count) {
  return (count + kGrain - 1) / kGrain * kGrain;
}

/// Queries of a tile; every array over a tile's queries has so many doubles, aligned to 64 bytes.
/// Decided by the processor, so it is the same for all calls of a process.
std::int64_t tile_width();

/// Ways in which keys are hidden from queries: none is; a query sees one run of keys; by a matrix.
enum class Hiding { nothing, runs, matrix };

/// Keys from `first_key` on, `keys` of them, a multiple of kGrain. No number in it may be NaN.
struct FastKeys {
  std::int64_t first_key = 0;
  std::int64_t keys = 0;
  const double* k = nullptr;  ///< (keys, head_dim), rows k_stride apart
  std::int64_t k_stride = 0;
  const double* v = nullptr;  ///< (keys, value_channels), rows v_stride apart
  std::int64_t v_stride = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_channels = 0;  ///< a multiple of kGrain
};

/// The running state of a tile.
struct FastQueries {
  const double* queries = nullptr;    ///< (head_dim, tile_width), times scale · log2 e
  const double* run_begin = nullptr;  ///< first key that each query sees, for Hiding::runs
  const double* run_end = nullptr;    ///< and the one after the last
  const double* hidden = nullptr;     ///< (keys, tile_width) of 0 and -inf, for Hiding::matrix
  double* weights = nullptr;          ///< scratch, (keys, tile_width)
  double* row_max = nullptr;          ///< the shift: running, from -inf on
  double* row_sum = nullptr;          ///< from 0 on
  double* factor = nullptr;           ///< scratch
  double* acc = nullptr;              ///< (value_channels, tile_width), from 0 on
  Hiding hiding = Hiding::nothing;
};

/// Takes the block into the tile's state. Returns whether a maximum rose, so that what was there
/// before was rescaled.
bool add_block(const FastKeys& block, const FastQueries& tile);

/// Σ x², summed in any order; NaN or inf when a number is not finite.
double sum_of_squares(const double* row, std::int64_t channels);
/// Raises largest[c] to |row[c]|. Returns whether all numbers are finite.
bool raise_to_magnitudes(const double* row, std::int64_t channels, double* largest);

/// 2^x for `count` numbers, as the kernel computes it: x at most 1000, -inf included.
void powers_of_two(const double* x, std::int64_t count, double* result);

}  // namespace ringlab::fast
