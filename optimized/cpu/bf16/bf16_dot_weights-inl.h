// Scores that become weights, 16 lanes of a tile at a time.
#pragma once

#include "optimized/cpu/bf16/bf16_dot_tile.h"
#include "optimized/cpu/bf16/bf16_dot_vectors-inl.h"

namespace ringlab::cpu::bf16_dot {

/// 2^x within 2^-23, by a polynomial of degree 5 like that of weight_of().
inline __m512 factor_of(__m512 x) {
  const __m512 n = rounded(x), r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(0x1.5bba14p-10f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.3cea88p-7f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.c6b752p-5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.ebf9bcp-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.62e42ap-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

/// weigh() for the lanes of vector x. Differences and sums are written as products with 1: on some
/// processors other units do these, and the units that add have enough to do here.
class WeighedLanes {
 public:
  WeighedLanes() = default;
  /// Takes in the largest scores.
  [[gnu::always_inline]] WeighedLanes(const Weighing& job, int x) : x_(x) {
    const __m512 before = _mm512_load_ps(job.row_max + 16 * x);
    // Scaled only now: the scale is positive, so the largest score is the largest scaled one.
    const __m512 top = _mm512_max_ps(
        before, _mm512_mul_ps(_mm512_load_ps(job.tops + 16 * x), _mm512_set1_ps(job.scale)));
    _mm512_store_ps(job.row_max + 16 * x, top);
    // (-inf) - (-inf) must not happen: a row without keys is measured from 0.
    base_ = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(top, _mm512_set1_ps(kNone), _CMP_NEQ_UQ), top);
    keep_ = factor_of(_mm512_sub_ps(before, base_));  // 0 where nothing was seen before
    _mm512_store_ps(job.keep + 16 * x, keep_);
    even_ = odd_ = _mm512_setzero_ps();
  }

  /// Rows first … last-1, from an even one to an even one, in order.
  [[gnu::always_inline]] void weigh_rows(const Weighing& job, std::int64_t first,
                                         std::int64_t last) {
    const __m512 scale = _mm512_set1_ps(job.scale), one = _mm512_set1_ps(1.0f);
    const float* at = job.scores + first * kWidth + 16 * x_;
    float* out = job.scores + first / 2 * kWidth + 16 * x_;
    for (std::int64_t j = first; j < last; j += 2, at += 2 * kWidth, out += kWidth) {
      const __m512 even = _mm512_mul_ps(_mm512_load_ps(at), scale);
      const __m512 odd = _mm512_mul_ps(_mm512_load_ps(at + kWidth), scale);
      const __m512 w = weight_of(_mm512_fmsub_ps(even, one, base_));  // exactly 1 at the maximum
      const __m512 u = weight_of(_mm512_fmsub_ps(odd, one, base_));
      even_ = _mm512_fmadd_ps(w, one, even_);  // two chains: one would wait for itself
      odd_ = _mm512_fmadd_ps(u, one, odd_);
      // A pair of weights per lane, over the scores of its first key.
      _mm512_store_si512(out, in_turn(narrowed(w, u)));
    }
  }

  /// Stores the row sums; true when a factor is not 1, NaN included: there is something to rescale.
  [[gnu::always_inline]] bool end(const Weighing& job) const {
    const __m512 sum = _mm512_mul_ps(_mm512_load_ps(job.row_sum + 16 * x_), keep_);
    _mm512_store_ps(job.row_sum + 16 * x_, _mm512_add_ps(sum, _mm512_add_ps(even_, odd_)));
    return _mm512_cmp_ps_mask(keep_, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ) != 0;
  }

 private:
  int x_ = 0;
  __m512 base_, keep_, even_, odd_;
};

}  // namespace ringlab::cpu::bf16_dot
