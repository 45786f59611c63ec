// The register tiles of the forward pass. This file and bf16_dot_backward_tile.cpp are the only
// ones that are compiled for processors with AVX512_BF16, and the only ones with intrinsics: they
// include no template that other files instantiate, so that no such code runs on other processors.
#include "optimized/cpu/bf16/bf16_dot_tile.h"

#include <immintrin.h>

#include "optimized/cpu/bf16/bf16_dot_vectors-inl.h"

namespace ringlab::cpu::bf16_dot {
namespace {

/// Scores of kRows keys from row `row` on.
template <int kRows>
[[gnu::always_inline]] inline void score_rows(const Scoring& job, std::int64_t row) {
  const std::uint16_t* const keys = job.keys + row * 2 * job.pairs;
  float* const scores = job.scores + row * kWidth;
  __m512 sums[kRows][kVectors];  // (keys, lanes), in registers over all channels
  for (auto& of_key : sums) {
    for (__m512& sum : of_key) sum = _mm512_setzero_ps();
  }
  for (std::int64_t t = 0; t < job.pairs; ++t) {  // pairs of channels
    __m512i query[kVectors];
    for (int x = 0; x < kVectors; ++x) {
      query[x] = _mm512_load_si512(job.queries + t * kWidth + 16 * x);
    }
    // Fetches the keys of the next register tile, and the scores that it will write.
    fetch(keys + 2 * kRows * (job.pairs + t));
    fetch(scores + kRows * kWidth + 16 * t);
    for (int i = 0; i < kRows; ++i) {
      // One key's pair of channels in every lane.
      const __m512i key = pair_at(keys + 2 * (i * job.pairs + t));
      for (int x = 0; x < kVectors; ++x) {
        sums[i][x] = _mm512_dpbf16_ps(sums[i][x], as_bf16(query[x]), as_bf16(key));
      }
    }
  }
  // max(a, b) is b where either is NaN, so a NaN may be lost from the maximum; its weight is NaN
  // all the same, and so is the row.
  for (int x = 0; job.tops && x < kVectors; ++x) {
    __m512 top = _mm512_load_ps(job.tops + 16 * x);
    for (int i = 0; i < kRows; ++i) top = _mm512_max_ps(top, sums[i][x]);
    _mm512_store_ps(job.tops + 16 * x, top);
  }
  for (int i = 0; i < kRows; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      _mm512_store_ps(scores + i * kWidth + 16 * x, sums[i][x]);
    }
  }
}

/// 2^x within 2^-23, the same with degree 5.
__m512 factor_of(__m512 x) {
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
/// processors these run on other units than additions, whose units are busy here.
bool weigh_vector(const Weighing& job, int x) {
  const __m512 scale = _mm512_set1_ps(job.scale), one = _mm512_set1_ps(1.0f);
  const __m512 before = _mm512_load_ps(job.row_max + 16 * x);
  // Maxima are scaled only now: the scale is positive, so the largest score is the largest scaled.
  const __m512 top = _mm512_max_ps(before, _mm512_mul_ps(_mm512_load_ps(job.tops + 16 * x), scale));
  _mm512_store_ps(job.row_max + 16 * x, top);
  // (-inf) - (-inf) must not happen: a row without keys is measured from 0.
  const __m512 base =
      _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(top, _mm512_set1_ps(kNone), _CMP_NEQ_UQ), top);
  const __m512 keep = factor_of(_mm512_sub_ps(before, base));  // 0 where nothing was seen before
  _mm512_store_ps(job.keep + 16 * x, keep);
  const float* at = job.scores + 16 * x;
  float* out = job.scores + 16 * x;
  __m512 even = _mm512_setzero_ps(), odd = even;  // two chains of sums: one would wait for itself
  for (std::int64_t j = 0; j < job.count; j += 2, at += 2 * kWidth, out += kWidth) {
    const __m512 first = _mm512_mul_ps(_mm512_load_ps(at), scale);
    const __m512 second = _mm512_mul_ps(_mm512_load_ps(at + kWidth), scale);
    const __m512 w = weight_of(_mm512_fmsub_ps(first, one, base));  // exactly 1 at the maximum
    const __m512 u = weight_of(_mm512_fmsub_ps(second, one, base));
    even = _mm512_fmadd_ps(w, one, even);
    odd = _mm512_fmadd_ps(u, one, odd);
    // A pair of weights per lane, over the scores of its first key.
    _mm512_store_si512(out, in_turn(narrowed(w, u)));
  }
  const __m512 sum = _mm512_mul_ps(_mm512_load_ps(job.row_sum + 16 * x), keep);
  _mm512_store_ps(job.row_sum + 16 * x, _mm512_add_ps(sum, _mm512_add_ps(even, odd)));
  // A factor of NaN counts as not 1: the sums are rescaled.
  return _mm512_cmp_ps_mask(keep, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ) != 0;
}

/// add_weighted() for the panel of channels whose sums are at `acc`.
[[gnu::always_inline]] inline void add_panel(const Adding& job, const std::uint32_t* values,
                                             float* acc) {
  __m512 sums[kPanel][kVectors];  // (channels of the panel, lanes)
  for (int c = 0; c < kPanel; ++c) {
    for (int x = 0; x < kVectors; ++x) sums[c][x] = _mm512_load_ps(acc + c * kWidth + 16 * x);
  }
  if (job.keep) {
    for (int x = 0; x < kVectors; ++x) {
      const __m512 keep = _mm512_load_ps(job.keep + 16 * x);
      for (int c = 0; c < kPanel; ++c) sums[c][x] = _mm512_mul_ps(sums[c][x], keep);
    }
  }
  const std::uint32_t* weights = job.weights;
  // Pairs of keys.
  for (std::int64_t j = 0; j < job.pairs; ++j, weights += kWidth, values += kPanel) {
    __m512i weight[kVectors];
    for (int x = 0; x < kVectors; ++x) weight[x] = _mm512_load_si512(weights + 16 * x);
    fetch(values + job.panel_stride);
    fetch(acc + kPanel * (kWidth + j));
    for (int c = 0; c < kPanel; ++c) {
      // One channel of two values in every lane.
      const __m512i value = _mm512_set1_epi32(static_cast<int>(values[c]));
      for (int x = 0; x < kVectors; ++x) {
        sums[c][x] = _mm512_dpbf16_ps(sums[c][x], as_bf16(weight[x]), as_bf16(value));
      }
    }
  }
  for (int c = 0; c < kPanel; ++c) {
    for (int x = 0; x < kVectors; ++x) _mm512_store_ps(acc + c * kWidth + 16 * x, sums[c][x]);
  }
}

/// Two panels' worth of pairs, or one, or none: as many as begin before channel `left`. Returns
/// where the next goes.
std::uint32_t* store_panels(__m512i pairs, std::int64_t left, std::int64_t stride,
                            std::uint32_t* to) {
  const auto* const halves = reinterpret_cast<const __m256i*>(&pairs);
  for (int half = 0; half < 2 && left > half * kPanel; ++half, to += stride) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), halves[half]);
  }
  return to;
}

/// Gives `take` 16 words of 16 lanes turned into rows, and where they go in each row.
template <class Take>
void turn_squares(const float* lanes, std::int64_t count, std::int64_t words, const Take& take) {
  for (std::int64_t lane = 0; lane < count; lane += 16) {
    for (std::int64_t c = 0; c < words; c += 16) {
      const std::int64_t left = words - c < 16 ? words - c : 16;
      __m512i square[16];
      for (std::int64_t i = 0; i < 16; ++i) {
        square[i] =
            i < left ? _mm512_load_si512(lanes + (c + i) * kWidth + lane) : _mm512_setzero_si512();
      }
      transpose(square);
      const auto mask = static_cast<__mmask16>(first_words(left));
      for (std::int64_t i = 0; i < 16 && lane + i < count; ++i) {
        take((lane + i) * words + c, mask, _mm512_castsi512_ps(square[i]));
      }
    }
  }
}

}  // namespace

// 8 keys at once, then 2, then 1, all with the same order of sums.
void score(const Scoring& job) {
  for (int x = 0; job.tops && x < kVectors; ++x) {
    _mm512_store_ps(job.tops + 16 * x, _mm512_set1_ps(kNone));
  }
  std::int64_t row = 0;
  for (; row + kKeysAtOnce <= job.count; row += kKeysAtOnce) score_rows<kKeysAtOnce>(job, row);
  for (; row + 2 <= job.count; row += 2) score_rows<2>(job, row);
  if (row < job.count) score_rows<1>(job, row);
}

void hide_unseen(const LaneBounds& seen, std::int64_t row, std::int64_t count, float* scores) {
  const __m512 hidden = _mm512_set1_ps(kNone);
  for (int x = 0; x < kVectors; ++x) {
    const __m512i from = _mm512_load_si512(seen.first + 16 * x);
    const __m512i to = _mm512_load_si512(seen.last + 16 * x);
    // Compares rows of the run, as which the bounds are given.
    for (std::int64_t j = 0; j < count; ++j) {
      float* const at = scores + j * kWidth + 16 * x;
      const __m512i key = _mm512_set1_epi32(static_cast<int>(row + j));
      const __mmask16 unseen = static_cast<__mmask16>(_mm512_cmplt_epi32_mask(key, from) |
                                                      _mm512_cmpge_epi32_mask(key, to));
      _mm512_mask_store_ps(at, unseen, hidden);
    }
  }
}

void find_tops(const float* scores, std::int64_t count, float* tops) {
  for (int x = 0; x < kVectors; ++x) {
    __m512 top = _mm512_set1_ps(kNone);
    for (std::int64_t j = 0; j < count; ++j) {
      top = _mm512_max_ps(top, _mm512_load_ps(scores + j * kWidth + 16 * x));
    }
    _mm512_store_ps(tops + 16 * x, top);
  }
}

bool weigh(const Weighing& job) {
  bool rescale = false;
  for (int x = 0; x < kVectors; ++x) rescale |= weigh_vector(job, x);
  return rescale;
}

void add_weighted(const Adding& job) {
  for (std::int64_t panel = 0; panel < job.panels; ++panel) {
    add_panel(job, job.values + panel * job.panel_stride, job.acc + panel * kPanel * kWidth);
  }
}

bool pack_values(const Packing& job) {
  // Words of `first` and `second` (32 and up) in turn: pairs (first, second) for 16 channels.
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __m512i magnitude = _mm512_set1_epi16(0x7fff);
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t row = 0; row < job.rows; row += 2) {
    const std::uint16_t* const even = job.values + row * job.channels;
    const bool alone = row + 1 == job.rows;  // the second row of the last pair is zeros then
    std::uint32_t* to = job.panels + row / 2 * kPanel;
    for (std::int64_t c = 0; c < job.channels; c += 32) {
      const std::int64_t left = job.channels - c;
      const __m512i first = _mm512_maskz_loadu_epi16(first_words(left), even + c);
      const __m512i second =
          _mm512_maskz_loadu_epi16(alone ? 0 : first_words(left), even + job.channels + c);
      largest = _mm512_max_epu16(largest, _mm512_and_si512(first, magnitude));
      largest = _mm512_max_epu16(largest, _mm512_and_si512(second, magnitude));
      to = store_panels(_mm512_permutex2var_epi16(first, low, second), left, job.panel_stride, to);
      to = store_panels(_mm512_permutex2var_epi16(first, high, second), left - 16, job.panel_stride,
                        to);
    }
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

void turn_into_lanes(const void* rows, std::int64_t count, std::int64_t words, void* lanes) {
  const auto* const from = static_cast<const char*>(rows);
  auto* const to = static_cast<char*>(lanes);
  for (std::int64_t lane = 0; lane < kWidth; lane += 16) {
    for (std::int64_t c = 0; c < words; c += 16) {
      const std::int64_t left = words - c < 16 ? words - c : 16;
      const auto mask = static_cast<__mmask16>(first_words(left));
      __m512i square[16];
      for (std::int64_t i = 0; i < 16; ++i) {
        const std::int64_t row = lane + i < count ? lane + i : count - 1;
        square[i] = _mm512_maskz_loadu_epi32(mask, from + 4 * (row * words + c));
      }
      transpose(square);
      for (std::int64_t i = 0; i < left; ++i) {
        _mm512_store_si512(to + 4 * ((c + i) * kWidth + lane), square[i]);
      }
    }
  }
}

void turn_into_rows(const float* lanes, std::int64_t count, std::int64_t words, float* rows) {
  turn_squares(lanes, count, words, [&](std::int64_t at, __mmask16 mask, __m512 some) {
    _mm512_mask_storeu_ps(rows + at, mask, some);
  });
}

void add_to_rows(const float* lanes, std::int64_t count, std::int64_t words, float* rows) {
  turn_squares(lanes, count, words, [&](std::int64_t at, __mmask16 mask, __m512 some) {
    const __m512 before = _mm512_maskz_loadu_ps(mask, rows + at);
    _mm512_mask_storeu_ps(rows + at, mask, _mm512_add_ps(before, some));
  });
}

bool has_subnormal(const std::uint16_t* values, std::int64_t count) {
  // Subnormal magnitudes are 1 … 0x7f.
  const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
  __m512i least = magnitude;
  for (std::int64_t i = 0; i < count; i += 32) {
    const __m512i bits = _mm512_maskz_loadu_epi16(first_words(count - i), values + i);
    // 0 becomes 0xffff by taking 1 off, so that only 1 … 0x7f is small.
    const __m512i from_one = _mm512_sub_epi16(_mm512_and_si512(bits, magnitude), one);
    least = _mm512_min_epu16(least, from_one);
  }
  return _mm512_cmple_epu16_mask(least, _mm512_set1_epi16(0x7e)) != 0;
}

void weights_of(const float* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += 16) {
    _mm512_storeu_ps(out + i, weight_of(_mm512_loadu_ps(x + i)));
  }
}

}  // namespace ringlab::cpu::bf16_dot
