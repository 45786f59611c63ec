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

/// rows[i] column j <-> rows[j] column i, in every block of 128 bits.
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
  const hn::Repartition<double, D> pairs;
  const auto lower = [&](V a, V b) {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto upper = [&](V a, V b) {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  rows[0] = lower(low, other_low);
  rows[1] = upper(low, other_low);
  rows[2] = lower(high, other_high);
  rows[3] = upper(high, other_high);
}
#endif

/// kSquare channels of the rows 0, kSquare, 2 kSquare … from `rows` on, one block of 128 bits each.
template <class D, class Real>
HWY_INLINE hn::Vec<D> load_blocks(D d, const Real* rows, [[maybe_unused]] std::int64_t channels) {
  constexpr std::int64_t kSide = kSquare<Real>;
  constexpr int kBlocks = hn::MaxLanes(D()) / kSide;
  if constexpr (kBlocks == 1) return hn::LoadU(d, rows);
#if HWY_TARGET != HWY_SCALAR
  auto blocks = hn::LoadDup128(d, rows);
  for (int block = 1; block < kBlocks; ++block) {
    const auto next = hn::LoadDup128(d, rows + block * kSide * channels);
    blocks = kBlocks == 2 ? hn::ConcatUpperLower(d, next, blocks)
                          : hn::IfThenElse(hn::FirstN(d, block * kSide), blocks, next);
  }
  return blocks;
#endif
}

/// The transposed words of a vector of rows, `words` of them a row, whole squares: store(word,
/// vector). The rows behind them are fetched ahead.
template <class Real, class Store>
HWY_INLINE void turn_words(const Real* rows, std::int64_t words, const Store& store) {
  const hn::ScalableTag<Real> d;
  constexpr std::int64_t kSide = kSquare<Real>;
  const Real* const ahead = rows + lanes<Real>() * words;
  for (std::int64_t word = 0; word < words; word += kSide) {
    Vector<Real> square[kSide];
    for (std::int64_t i = 0; i < kSide; ++i) {
      square[i] = load_blocks(d, rows + i * words + word, words);
      hwy::Prefetch(ahead + word * lanes<Real>() + i * (64 / sizeof(Real)));
    }
    transpose(d, square);
    for (std::int64_t i = 0; i < kSide; ++i) store(word + i, square[i]);
  }
}

/// Channels that turn_words() takes as a square: channels of bf16 lie in pairs.
template <class Real, class From>
inline constexpr std::int64_t kChannelsOfSquare =
    std::is_same_v<From, Real> ? kSquare<Real>
                               : (std::is_same_v<From, BFloat16> ? 2 * kSquare<Real> : 0);

/// to[channel][lane] = rows[lane][channel] of a vector of lanes, widened.
template <class Real>
HWY_INLINE void vector_into_lanes(const Real* rows, std::int64_t channels, Real* to,
                                  std::int64_t stride) {
  const hn::ScalableTag<Real> d;
  turn_words(rows, channels, [&](std::int64_t channel, Vector<Real> lane) HWY_ATTR {
    hn::StoreU(lane, d, to + channel * stride);
  });
}
HWY_INLINE void vector_into_lanes(const BFloat16* rows, std::int64_t channels, float* to,
                                  std::int64_t stride) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto high = hn::Set(bits, 0xFFFF0000);
  const auto turn = [&](std::int64_t pair, Vector<float> lane) HWY_ATTR {
    const auto both = hn::BitCast(bits, lane);
    float* const even = to + 2 * pair * stride;
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(both)), d, even);
    hn::StoreU(hn::BitCast(d, hn::And(both, high)), d, even + stride);
  };
  turn_words(reinterpret_cast<const float*>(rows), channels / 2, turn);
}

/// to[channel][lane] = rows[lane][channel], widened; lanes from `count` on repeat the last row.
/// `rows` are dense, `to` has `width` lanes a row, whole squares, `stride` numbers from row to row.
template <class Real, class From>
void into_lanes(const From* rows, std::int64_t count, std::int64_t channels, Real* to,
                std::int64_t width, std::int64_t stride) {
  const SquareTag<Real> d;
  constexpr std::int64_t kSide = kSquare<Real>, kWhole = kChannelsOfSquare<Real, From>;
  std::int64_t lane = 0;
  if constexpr (kWhole > 0) {
    const bool whole = channels % kWhole == 0;
    for (; whole && lane + lanes<Real>() <= count; lane += lanes<Real>()) {
      vector_into_lanes(rows + lane * channels, channels, to + lane, stride);
    }
  }
  for (; lane < width; lane += kSide) {
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

/// into_lanes() for a tile of queries.
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
