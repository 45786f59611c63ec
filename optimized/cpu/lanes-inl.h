// Rows of channels into lanes, and back: a transposition. Included once per target.
#if defined(RINGLAB_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_LANES_INL_H_
#undef RINGLAB_CPU_LANES_INL_H_
#else
#define RINGLAB_CPU_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "optimized/cpu/product_tile-inl.h"
#include "optimized/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
template <class Real>
using SquareTag = hn::ScalableTag<Real>;
#else
template <class Real>
using SquareTag = hn::Full128<Real>;
#endif

/// Rows and columns of the squares that are transposed in registers.
template <class Real>
inline constexpr std::int64_t kSquare = hn::MaxLanes(SquareTag<Real>());

/// rows[i] column j <-> rows[j] column i.
template <class D, class V>
HWY_INLINE void transpose(D d, V (&rows)[1]) {
  (void)d, (void)rows;
}
#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE void transpose(D d, V (&rows)[2]) {
  const V first = hn::InterleaveLower(d, rows[0], rows[1]);
  rows[1] = hn::InterleaveUpper(d, rows[0], rows[1]);
  rows[0] = first;
}
template <class D, class V>
HWY_INLINE void transpose(D d, V (&rows)[4]) {
  const V low = hn::InterleaveLower(d, rows[0], rows[1]);
  const V high = hn::InterleaveUpper(d, rows[0], rows[1]);
  const V other_low = hn::InterleaveLower(d, rows[2], rows[3]);
  const V other_high = hn::InterleaveUpper(d, rows[2], rows[3]);
  rows[0] = hn::ConcatLowerLower(d, other_low, low);
  rows[1] = hn::ConcatUpperUpper(d, other_low, low);
  rows[2] = hn::ConcatLowerLower(d, other_high, high);
  rows[3] = hn::ConcatUpperUpper(d, other_high, high);
}
#endif

/// to[channel][lane] = rows[lane][channel], widened; lanes from `count` on repeat the last row.
/// `rows` are dense, `to` has `width` lanes a row, whole squares, `stride` numbers from row to row.
template <class Real, class From>
void into_lanes(const From* rows, std::int64_t count, std::int64_t channels, Real* to,
                std::int64_t width, std::int64_t stride) {
  const SquareTag<Real> d;
  constexpr std::int64_t kSide = kSquare<Real>;
  for (std::int64_t lane = 0; lane < width; lane += kSide) {
    const From* from[kSide];
    for (std::int64_t i = 0; i < kSide; ++i) {
      from[i] = rows + std::min(lane + i, count - 1) * channels;
    }
    std::int64_t c = 0;
    for (; c + kSide <= channels; c += kSide) {
      hn::Vec<decltype(d)> square[kSide];
      for (std::int64_t i = 0; i < kSide; ++i) square[i] = load_wide(d, from[i] + c);
      transpose(d, square);
      for (std::int64_t i = 0; i < kSide; ++i)
        hn::StoreU(square[i], d, to + (c + i) * stride + lane);
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < kSide; ++i) {
        to[c * stride + lane + i] = static_cast<Real>(from[i][c]);
      }
    }
  }
}

/// The same for a tile of queries.
template <class Real, class From>
void into_lanes(const From* rows, std::int64_t count, std::int64_t channels, Real* to) {
  into_lanes(rows, count, channels, to, tile_width<Real>(), tile_width<Real>());
}

/// The fate of numbers that leave their lanes: they replace what is in memory, or are added to it.
enum class Leave { replacing, adding };

/// rows[lane][channel] = from[channel][lane], or += it, for the first `count` lanes.
template <Leave kLeave, class Real>
void out_of_lanes(const Real* from, std::int64_t count, std::int64_t channels, Real* rows) {
  const SquareTag<Real> d;
  constexpr std::int64_t kSide = kSquare<Real>;
  const std::int64_t width = tile_width<Real>();
  const auto leave_alone = [&](std::int64_t lane, std::int64_t c) {
    Real& to = rows[lane * channels + c];
    to = kLeave == Leave::adding ? to + from[c * width + lane] : from[c * width + lane];
  };
  std::int64_t lane = 0;
  for (; lane + kSide <= count; lane += kSide) {
    std::int64_t c = 0;
    for (; c + kSide <= channels; c += kSide) {
      hn::Vec<decltype(d)> square[kSide];
      for (std::int64_t i = 0; i < kSide; ++i) {
        square[i] = hn::LoadU(d, from + (c + i) * width + lane);
      }
      transpose(d, square);
      for (std::int64_t i = 0; i < kSide; ++i) {
        Real* const to = rows + (lane + i) * channels + c;
        if (kLeave == Leave::adding) square[i] = hn::Add(hn::LoadU(d, to), square[i]);
        hn::StoreU(square[i], d, to);
      }
    }
    for (; c < channels; ++c) {
      for (std::int64_t i = 0; i < kSide; ++i) leave_alone(lane + i, c);
    }
  }
  for (; lane < count; ++lane) {
    for (std::int64_t c = 0; c < channels; ++c) leave_alone(lane, c);
  }
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
