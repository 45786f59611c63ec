// Vectors of bf16 and operations on them, for the files that are compiled for processors with
// AVX512_BF16.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace ringlab::cpu::bf16_dot {
inline constexpr float kNone = -__builtin_inff();

inline __m512bh as_bf16(__m512i pairs) { return (__m512bh)pairs; }

inline __m512i pair_at(const std::uint16_t* at) {
  std::uint32_t pair;
  __builtin_memcpy(&pair, at, sizeof pair);
  return _mm512_set1_epi32(static_cast<int>(pair));
}

/// Brings a line near that will be wanted soon, if there is such memory.
inline void fetch(const void* at) { _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0); }

inline __m512 rounded(__m512 x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// 2^x, x <= 0 or so, by the polynomial of degree 3 with 2^0 = 1 whose largest relative error on
/// [-1/2, 1/2] is least. p · 2^-inf is 0 by definition of the instruction, even where p is NaN.
inline __m512 weight_of(__m512 x) {
  const __m512 n = rounded(x), r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(0x1.c2a238p-5f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.f00c5ap-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.62f5fap-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

/// The 16 words of the low half and those of the high half, in turn.
inline __m512i in_turn(__m512i halves) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, halves);
}

/// Two vectors rounded to bf16, to nearest even: the first in the low half.
inline __m512i narrowed(__m512 first, __m512 second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}

/// The lowest `count` of 32 words; none where it is negative.
inline __mmask32 first_words(std::int64_t count) {
  if (count >= 32) return ~__mmask32{0};
  return count <= 0 ? 0 : (__mmask32{1} << count) - 1;
}

/// Turns 16 rows of 16 lanes of 32 bits into columns.
[[gnu::always_inline]] inline void transpose(__m512i (&rows)[16]) {
  __m512i two[16], four[16], eight[16];
  for (int i = 0; i < 16; i += 2) {  // pairs of rows, in each quarter
    two[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    two[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    four[i] = _mm512_unpacklo_epi64(two[i], two[i + 2]);
    four[i + 1] = _mm512_unpackhi_epi64(two[i], two[i + 2]);
    four[i + 2] = _mm512_unpacklo_epi64(two[i + 1], two[i + 3]);
    four[i + 3] = _mm512_unpackhi_epi64(two[i + 1], two[i + 3]);
  }
  // four[4 g + j]: of rows 4 g … 4 g + 3, column 4 q + j in quarter q.
  for (int j = 0; j < 4; ++j) {
    eight[j] = _mm512_shuffle_i32x4(four[j], four[4 + j], 0x44);
    eight[4 + j] = _mm512_shuffle_i32x4(four[j], four[4 + j], 0xee);
    eight[8 + j] = _mm512_shuffle_i32x4(four[8 + j], four[12 + j], 0x44);
    eight[12 + j] = _mm512_shuffle_i32x4(four[8 + j], four[12 + j], 0xee);
  }
  for (int j = 0; j < 4; ++j) {
    rows[j] = _mm512_shuffle_i32x4(eight[j], eight[8 + j], 0x88);
    rows[4 + j] = _mm512_shuffle_i32x4(eight[j], eight[8 + j], 0xdd);
    rows[8 + j] = _mm512_shuffle_i32x4(eight[4 + j], eight[12 + j], 0x88);
    rows[12 + j] = _mm512_shuffle_i32x4(eight[4 + j], eight[12 + j], 0xdd);
  }
}

}  // namespace ringlab::cpu::bf16_dot
