// Compiled for processors with AVX512_BF16, like bf16_dot_tile.cpp, and with intrinsics.
#include "optimized/cpu/bf16/bf16_dot_backward_tile.h"

#include <immintrin.h>

#include "optimized/cpu/bf16/bf16_dot_vectors-inl.h"

namespace ringlab::cpu::bf16_dot {
namespace {

constexpr int kWideVectors = kWidePanel / 16;
constexpr std::int64_t kRowsAtOnce = 6;  // keys of a full register tile

struct Change {
  __m512 p, ds;
};

/// differentiate() for one key and 16 lanes, those of `rows`.
Change change_of(__m512 score, __m512 dp, __mmask16 rows, __m512 scale, __m512 lse, __m512 delta) {
  const __mmask16 seen = _mm512_mask_cmp_ps_mask(rows, score, _mm512_set1_ps(kNone), _CMP_NEQ_UQ);
  const __m512 p = _mm512_maskz_mov_ps(seen, weight_of(_mm512_fmsub_ps(score, scale, lse)));
  const __mmask16 some = _mm512_cmp_ps_mask(p, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  return {p, _mm512_maskz_mul_ps(some, p, _mm512_sub_ps(dp, delta))};
}

/// Stores both halves, to two neighbouring rows.
void store_rows(__m512i halves, std::int64_t stride, std::uint16_t* to) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(halves));
  _mm256_store_si256(reinterpret_cast<__m256i*>(to + stride), _mm512_extracti64x4_epi64(halves, 1));
}

/// The masks that end rows of `channels` numbers, from channel `first` on.
struct FirstAndLast {
  explicit FirstAndLast(std::int64_t left) {
    for (int x = 0; x < kWideVectors; ++x) {
      mask[x] = static_cast<__mmask16>(first_words(left - 16 * x) & 0xffffu);
    }
  }
  __mmask16 mask[kWideVectors];
};

/// A panel's sums of kRows keys; job.rows and job.sums are those of the panel.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_rows(const Gathering& job, const FirstAndLast& ends,
                                            std::int64_t key) {
  const std::uint16_t* const weights = job.weights + key * job.weight_stride;
  float* const sums_at = job.sums + key * job.channels;
  __m512 sums[kRows][kVectors];  // kRows · kVectors accumulators stay in registers over all queries
  for (int i = 0; i < kRows; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      sums[i][x] = _mm512_maskz_loadu_ps(ends.mask[x], sums_at + i * job.channels + 16 * x);
    }
  }
  const std::uint32_t* rows = job.rows;
  // (pair of rows, kVectors · 16 channels)
  for (std::int64_t t = 0; t < job.pairs; ++t, rows += kWidePanel) {
    __m512i row[kVectors];
    for (int x = 0; x < kVectors; ++x) row[x] = _mm512_load_si512(rows + 16 * x);
    for (int i = 0; i < kRows; ++i) {
      // Two queries' weights for one key, in every lane.
      const __m512i weight = pair_at(weights + i * job.weight_stride + 2 * t);
      for (int x = 0; x < kVectors; ++x) {
        sums[i][x] = _mm512_dpbf16_ps(sums[i][x], as_bf16(weight), as_bf16(row[x]));
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      _mm512_mask_storeu_ps(sums_at + i * job.channels + 16 * x, ends.mask[x], sums[i][x]);
    }
  }
}

template <int kVectors>
void add_panel(const Gathering& job, const FirstAndLast& ends) {
  std::int64_t key = 0;
  for (; key + kRowsAtOnce <= job.keys; key += kRowsAtOnce) {
    add_rows<kRowsAtOnce, kVectors>(job, ends, key);
  }
  for (; key + 2 <= job.keys; key += 2) add_rows<2, kVectors>(job, ends, key);
  if (key < job.keys) add_rows<1, kVectors>(job, ends, key);
}

}  // namespace

// Two keys a turn: their P and dS are a pair in dQ's sum, and a row each in those of dK and dV.
void differentiate(const Differentiating& job) {
  const __m512 scale = _mm512_set1_ps(job.scale);
  __m512 lse[kVectors], delta[kVectors];
  __mmask16 rows[kVectors];
  for (int x = 0; x < kVectors; ++x) {
    lse[x] = _mm512_load_ps(job.lse + 16 * x);
    delta[x] = _mm512_load_ps(job.delta + 16 * x);
    // Lanes that are queries.
    rows[x] = static_cast<__mmask16>(first_words(job.lanes - 16 * x) & 0xffffu);
  }
  for (std::int64_t j = 0; j < job.count; j += 2) {
    for (int x = 0; x < kVectors; ++x) {
      const float* const score = job.scores + j * kWidth + 16 * x;
      const float* const dp = job.dp + j * kWidth + 16 * x;
      const Change even =
          change_of(_mm512_load_ps(score), _mm512_load_ps(dp), rows[x], scale, lse[x], delta[x]);
      const Change odd = change_of(_mm512_load_ps(score + kWidth), _mm512_load_ps(dp + kWidth),
                                   rows[x], scale, lse[x], delta[x]);
      const std::int64_t at = j * job.rows.stride + 16 * x;
      store_rows(narrowed(even.p, odd.p), job.rows.stride, job.rows.p + at);
      const __m512i ds = narrowed(even.ds, odd.ds);
      store_rows(ds, job.rows.stride, job.rows.ds + at);
      _mm512_store_si512(job.ds + j / 2 * kWidth + 16 * x, in_turn(ds));
    }
  }
}

bool pack_rows(const RowPacking& job) {
  const __m512i magnitude = _mm512_set1_epi16(0x7fff);
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t t = 0; t < job.pairs; ++t) {
    // Rows 2t and 2t+1 become one row of pairs.
    const std::uint16_t* const even = job.values + 2 * t * job.channels;
    for (std::int64_t c = 0; c < job.channels; c += 16) {
      const __mmask32 all = first_words(job.channels - c) & 0xffffu;
      const __mmask32 first = 2 * t < job.rows ? all : 0;
      const __mmask32 second = 2 * t + 1 < job.rows ? all : 0;
      const __m512i low = _mm512_maskz_loadu_epi16(first, even + c);
      const __m512i high = _mm512_maskz_loadu_epi16(second, even + job.channels + c);
      const __m512i halves = _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
      // 0x7f80 is infinity: every larger magnitude is NaN. Compared as integers, all at once.
      largest = _mm512_max_epu16(largest, _mm512_and_si512(halves, magnitude));
      std::uint32_t* const panel = job.panels + c / kWidePanel * job.panel_stride;
      _mm512_store_si512(panel + t * kWidePanel + c % kWidePanel, in_turn(halves));
    }
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

void add_over_queries(const Gathering& job) {
  // Panel by panel: kWidePanel channels of the rows are read while they are in the cache.
  Gathering panel = job;
  for (std::int64_t c = 0; c < job.channels; c += kWidePanel) {
    const FirstAndLast ends(job.channels - c);
    const std::int64_t left = job.channels - c;
    if (left > 48) {
      add_panel<4>(panel, ends);
    } else if (left > 32) {
      add_panel<3>(panel, ends);
    } else if (left > 16) {
      add_panel<2>(panel, ends);
    } else {
      add_panel<1>(panel, ends);
    }
    panel.rows += job.panel_stride;
    panel.sums += kWidePanel;
  }
}

}  // namespace ringlab::cpu::bf16_dot
