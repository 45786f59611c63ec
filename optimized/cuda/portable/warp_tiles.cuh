// Operations of warps on tiles of 16-bit elements in shared memory: copy them in, take fragments of
// them into registers, multiply the fragments.
//
// Fragments (m16n8k16, PTX ISA): with g = lane / 4 and t = lane % 4 a lane holds of d (16, 8) the
// columns 2t, 2t + 1 of the rows g (d[0], d[1]) and g + 8 (d[2], d[3]). Rows of accumulators below
// are arrays of such d, eight columns each.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/device_code.h"
#include "optimized/cuda/portable/widen.cuh"

namespace ringlab::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr int kFragmentRows = 16;  ///< and channels: fragments come from squares
inline constexpr int kUnitBytes = 16;     ///< that cp.async copies and a row of ldmatrix has
inline constexpr int kUnit = 8;           ///< elements of kUnitBytes

RINGLAB_KERNEL_CODE int lane_index() { return thread_index() % kWarpLanes; }
RINGLAB_KERNEL_CODE int warp_index() { return thread_index() / kWarpLanes; }

/// Rows of kChannels elements in shared memory. The units of a row are stored in an order that
/// changes from row to row, so that the same unit of eight neighbouring rows, which ldmatrix reads
/// at once, lies in eight different groups of banks.
template <int kChannels>
struct SharedTile {
  static_assert(kChannels % 32 == 0);
  static constexpr int kUnits = kChannels / kUnit;
  std::byte* data;

  RINGLAB_KERNEL_CODE std::byte* at(int row, int channel) const {
    // Eight units fill all banks; rows of four units fill half of them.
    const unsigned r = static_cast<unsigned>(row), c = static_cast<unsigned>(channel);
    const unsigned turn = kUnits % 8 == 0 ? r % 8 : r / 2 % 4;
    return data + ((r * kUnits + ((c / kUnit) ^ turn)) * kUnitBytes + c % kUnit * 2);
  }
};

/// The rows of one head in global memory, (rows, channels).
template <class Element>
struct HeadRows {
  const Element* data;
  std::int32_t channels;  ///< a multiple of 8
};

/// Begins to copy the rows first … first + kRows - 1. Rows outside `exists`, and channels that the
/// tensor lacks, become zeros.
template <int kRows, int kThreads, class Element, int kChannels>
RINGLAB_KERNEL_CODE void copy_tile(SharedTile<kChannels> tile, HeadRows<Element> rows, int first,
                                   KeyRange exists) {
  constexpr int kUnits = kRows * SharedTile<kChannels>::kUnits;
  static_assert(kUnits % kThreads == 0);
  for (int step = 0; step < kUnits / kThreads; ++step) {
    constexpr int kRowUnits = SharedTile<kChannels>::kUnits;
    static_assert(kThreads % kRowUnits == 0);  // a thread keeps its channels
    const int row = thread_index() / kRowUnits + step * (kThreads / kRowUnits);
    const int channel = thread_index() % kRowUnits * kUnit;
    const int at = first + row;
    const bool valid = at >= exists.first && at < exists.last && channel < rows.channels;
    const std::int64_t offset = static_cast<std::int64_t>(at) * rows.channels + channel;
    copy_16_bytes(tile.at(row, channel), rows.data + (valid ? offset : 0), valid);
  }
}

struct alignas(16) Unit {
  std::uint32_t words[4];
};

/// Sets NaN and infinities that this thread has copied to zero, once they have arrived and before
/// other threads read them; true if there were any. A weight of 0 times them would be NaN.
template <class Element, int kRows, int kThreads, int kChannels>
RINGLAB_KERNEL_CODE bool clear_not_finite(SharedTile<kChannels> tile) {
  constexpr std::uint32_t kTop = Element::Format::top_exponent;
  constexpr int kRowUnits = SharedTile<kChannels>::kUnits;
  bool found = false;
  for (int row = thread_index() / kRowUnits; row < kRows; row += kThreads / kRowUnits) {
    auto* unit = reinterpret_cast<Unit*>(tile.at(row, thread_index() % kRowUnits * kUnit));
    Unit finite = *unit;
    RINGLAB_UNROLL
    for (std::uint32_t& word : finite.words) {
      if ((word & kTop) == kTop) word &= 0xffff0000u;
      if ((word >> 16 & kTop) == kTop) word &= 0x0000ffffu;
    }
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) found |= finite.words[i] != unit->words[i];
    *unit = finite;
  }
  return found;
}

// A square of 16 by 16 is four matrices of 8 by 8. The functions give the place of a lane's row of
// its matrix, for matrices 0 and 1 below each other or beside each other.
template <int kChannels>
RINGLAB_KERNEL_CODE const std::byte* down_first(SharedTile<kChannels> tile, int row, int channel) {
  return tile.at(row + lane_index() % 16, channel + lane_index() / 16 * 8);
}
template <int kChannels>
RINGLAB_KERNEL_CODE const std::byte* across_first(SharedTile<kChannels> tile, int row,
                                                  int channel) {
  return tile.at(row + lane_index() % 8 + lane_index() / 16 * 8,
                 channel + lane_index() / 8 % 2 * 8);
}

/// A (16 rows, 16) of a product, from rows row … row + 15.
template <int kChannels>
RINGLAB_KERNEL_CODE void load_left(std::uint32_t (&a)[4], SharedTile<kChannels> tile, int row,
                                   int channel) {
  load_matrices(a, down_first(tile, row, channel));
}
/// A of the transposed tile: its rows are channels, its columns the rows row … row + 15.
template <int kChannels>
RINGLAB_KERNEL_CODE void load_left_transposed(std::uint32_t (&a)[4], SharedTile<kChannels> tile,
                                              int row, int channel) {
  load_matrices_transposed(a, across_first(tile, row, channel));
}

/// d (16, 16) += a b, b (16, 16) as two fragments one after the other.
template <class Element>
RINGLAB_KERNEL_CODE void multiply_square(float (&left)[4], float (&right)[4],
                                         const std::uint32_t (&a)[4], const std::uint32_t (&b)[4]) {
  const std::uint32_t first[2] = {b[0], b[1]};
  const std::uint32_t second[2] = {b[2], b[3]};
  multiply_add<Element>(left, a, first);
  multiply_add<Element>(right, a, second);
}

template <int kCount>
RINGLAB_KERNEL_CODE void clear(float (&d)[kCount][4]) {
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; ++n) {
    RINGLAB_UNROLL
    for (int i = 0; i < 4; ++i) d[n][i] = 0;
  }
}

/// d (16, 8 · kCount) = A Bᵀ over all channels: rows a_row … of `a` by rows b_row … of `b`.
template <class Element, int kChannels, int kCount>
RINGLAB_KERNEL_CODE void multiply_tiles(float (&d)[kCount][4], SharedTile<kChannels> a, int a_row,
                                        SharedTile<kChannels> b, int b_row) {
  static_assert(kCount % 2 == 0);
  clear(d);
  RINGLAB_UNROLL_SOME
  for (int channel = 0; channel < kChannels; channel += kFragmentRows) {
    std::uint32_t left[4];
    load_left(left, a, a_row, channel);
    RINGLAB_UNROLL
    for (int n = 0; n < kCount; n += 2) {
      std::uint32_t right[4];
      load_matrices(right, across_first(b, b_row + n * kUnit, channel));
      multiply_square<Element>(d[n], d[n + 1], left, right);
    }
  }
}

/// d (16, 8 · kCount) += a B: B is rows row … row + 15 of the tile, channels channel ….
template <class Element, int kChannels, int kCount>
RINGLAB_KERNEL_CODE void add_weighted_rows(float (&d)[kCount][4], const std::uint32_t (&a)[4],
                                           SharedTile<kChannels> b, int row, int channel) {
  static_assert(kCount % 2 == 0);
  RINGLAB_UNROLL
  for (int n = 0; n < kCount; n += 2) {
    std::uint32_t right[4];
    load_matrices_transposed(right, down_first(b, row, channel + n * kUnit));
    multiply_square<Element>(d[n], d[n + 1], a, right);
  }
}

/// Neighbouring channels: one access to memory.
struct alignas(8) FloatPair {
  float low, high;
};
template <class Element>
struct alignas(4) ElementPair {
  Element low, high;
};
/// A pair, both rounded to nearest even.
template <class Element>
RINGLAB_KERNEL_CODE ElementPair<Element> round_pair(float low, float high) {
  return __builtin_bit_cast(ElementPair<Element>, pack<Element>(low, high));
}

inline constexpr float kLn2 = 0.693147180559945309f;

/// The natural lse of a running state in base 2; -inf for a row that saw nothing, which has a sum
/// of 0: the sum is NaN when all that a row saw was NaN.
RINGLAB_KERNEL_CODE float finished_lse(float row_max, float row_sum) {
  if (row_max == kEmptyRowMax<float> && row_sum == 0) return kEmptyRowMax<float>;
  return row_max * kLn2 + logf(row_sum);
}
/// The divisor of the accumulators; accumulators of an empty row are 0 and stay 0.
RINGLAB_KERNEL_CODE float finished_divisor(float row_sum) { return row_sum == 0 ? 1.0f : row_sum; }

RINGLAB_KERNEL_CODE bool contains(KeyRange range, int key) {
  return key >= range.first && key < range.last;
}
/// True when the keys first … first + count - 1 all lie in the range.
RINGLAB_KERNEL_CODE bool covers(KeyRange range, int first, int count) {
  return first >= range.first && first + count <= range.last;
}

/// Padded channels that a kernel for these widths computes with.
constexpr int padded_channels(int head_dim, int v_dim) {
  const int widest = head_dim > v_dim ? head_dim : v_dim;
  return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}

}  // namespace ringlab::cuda
