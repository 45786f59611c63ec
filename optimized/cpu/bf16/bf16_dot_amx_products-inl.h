// The products of the bf16 kernels in matrices, with the work of vectors beside them: for
// processors with AVX512_BF16, and any Tiles (bf16_dot_amx_tiles-inl.h).
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_amx_tiles-inl.h"
#include "optimized/cpu/bf16/bf16_dot_products.h"
#include "optimized/cpu/bf16/bf16_dot_vectors-inl.h"

namespace ringlab::cpu::bf16_dot {

/// The largest scores so far, lane by lane.
struct RunningTops {
  RunningTops() {
    for (__m512& top : of) top = _mm512_set1_ps(kNone);
  }
  [[gnu::always_inline]] void take_in(const Scoring& job, std::int64_t row) {
    const std::int64_t last = row + kSide < job.count ? row + kSide : job.count;
    for (; row < last; ++row) {
      for (int x = 0; x < kVectors; ++x) {
        of[x] = _mm512_max_ps(of[x], _mm512_load_ps(job.scores + row * kWidth + 16 * x));
      }
    }
  }
  void store(float* tops) const {
    for (int x = 0; x < kVectors; ++x) _mm512_store_ps(tops + 16 * x, of[x]);
  }
  __m512 of[kVectors];
};

template <class Tiles>
void score_with_tops(const Scoring& job) {
  Tiles tiles;
  RunningTops tops;
  for (std::int64_t row = 0; row < job.count; row += kSide) {
    score_side(tiles, job, row);
    // Takes in the rows before: scores that were just stored are still on their way to memory.
    if (job.tops && row > 0) tops.take_in(job, row - kSide);
  }
  if (!job.tops) return;
  tops.take_in(job, (job.count - 1) / kSide * kSide);
  tops.store(job.tops);
}

/// Turns pairs of rows into columns: (panel of 16 channels, 16 pairs, channel, pair).
inline bool pack_matrices(const Packing& job) {
  const __m512i magnitude = _mm512_set1_epi16(0x7fff);
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t c = 0; c < job.channels; c += kSide) {
    const __mmask32 all = first_words(job.channels - c) & 0xffffu;
    std::uint32_t* to = job.panels + c / kSide * job.panel_stride;
    for (std::int64_t row = 0; row < job.rows; row += kKeyStep, to += kSide * kSide) {
      __m512i pairs[kSide];
      for (int t = 0; t < kSide; ++t) {
        const std::int64_t even = row + 2 * t;
        const std::uint16_t* const at = job.values + even * job.channels + c;
        const __m512i low = _mm512_maskz_loadu_epi16(even < job.rows ? all : 0, at);
        const __m512i high =
            _mm512_maskz_loadu_epi16(even + 1 < job.rows ? all : 0, at + job.channels);
        const __m512i halves = _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
        largest = _mm512_max_epu16(largest, _mm512_and_si512(halves, magnitude));
        pairs[t] = in_turn(halves);
      }
      transpose(pairs);
      for (int i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kSide, pairs[i]);
    }
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

/// Calls that set up and free a thread's tile registers; null where none are needed.
struct TileRegisters {
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

template <class Tiles>
constexpr Products products_in_tiles(const TileRegisters& registers = {}) {
  return {.score = score_with_tops<Tiles>,
          .add_weighted =
              [](const Adding& job) {
                Tiles tiles;
                add_weighted_in_tiles(tiles, job);
              },
          .add_over_queries =
              [](const Gathering& job) {
                Tiles tiles;
                add_over_queries_in_tiles(tiles, job);
              },
          .pack_values = pack_matrices,
          .pairs = kSide,
          .keys = kKeyStep,
          .rows = kSide,
          .panel = kSide,
          .groups = 4,
          .begin = registers.begin,
          .end = registers.end};
}

}  // namespace ringlab::cpu::bf16_dot
