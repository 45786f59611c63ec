// The register tiles of fast_forward and what lies between them. Included once per target.
#if defined(RINGLAB_ATTENTION_FAST_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_ATTENTION_FAST_TILE_INL_H_
#undef RINGLAB_ATTENTION_FAST_TILE_INL_H_
#else
#define RINGLAB_ATTENTION_FAST_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "reference/attention/fast_kernel.h"
#include "reference/attention/fast_power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::fast::HWY_NAMESPACE {

/// A tile has this many vectors of queries.
inline constexpr int kVectors = 3;
/// Numbers held against them at a time: 8·3 sums, 3 operands and one number fit 32 registers, 4·3
/// fit 16. Divides kGrain.
inline constexpr int kNumbers = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

HWY_INLINE std::int64_t vector_lanes() { return static_cast<std::int64_t>(hn::Lanes(Doubles())); }
HWY_INLINE std::int64_t width() { return kVectors * vector_lanes(); }

/// Terms of a turn of the loop; with 16 registers, what counts and jumps beside a term's 12
/// multiply-adds is worth saving.
inline constexpr int kTerms = HWY_TARGET <= HWY_AVX3 ? 1 : 4;

/// A factor of a product: number i of term t at i · step + t · stride. What the next product reads
/// is fetched into the cache on the way, where wide vectors would wait for it.
struct FactorNumbers {
  const double* first;
  std::int64_t step;
  std::int64_t stride;
  const double* ahead;
  std::int64_t ahead_stride;
};

/// sum + column · number, rounded once, in the register of the sum: where all 16 registers are
/// taken, compilers put it elsewhere, then run out of registers.
HWY_INLINE Vector add_product(Vector sum, Vector column, Vector number) {
#if HWY_TARGET == HWY_AVX2
  auto result = sum.raw;
  asm("vfmadd231pd %2, %1, %0" : "+x"(result) : "x"(column.raw), "x"(number.raw));
  return Vector{result};
#else
  return hn::MulAdd(column, number, sum);
#endif
}

/// sums[i][x] = Σ_t numbers(i, t) · columns[t][vector x], t in ascending order.
HWY_INLINE void multiply(const FactorNumbers& numbers, const double* HWY_RESTRICT columns,
                         std::int64_t terms, Vector (&sums)[kNumbers][kVectors]) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  for (int i = 0; i < kNumbers; ++i) {
    for (int x = 0; x < kVectors; ++x) sums[i][x] = hn::Zero(d);
  }
  const auto add = [&](std::int64_t t) HWY_ATTR {
    Vector column[kVectors];
    for (int x = 0; x < kVectors; ++x) column[x] = hn::Load(d, columns + (t * kVectors + x) * n);
    for (int i = 0; i < kNumbers; ++i) {
      const Vector number = hn::Set(d, numbers.first[i * numbers.step + t * numbers.stride]);
      for (int x = 0; x < kVectors; ++x) sums[i][x] = add_product(sums[i][x], column[x], number);
    }
  };
  std::int64_t t = 0;
  for (; t + kTerms <= terms; t += kTerms) {
    if (kTerms == 1) hwy::Prefetch(numbers.ahead + t * numbers.ahead_stride);
    for (int i = 0; i < kTerms; ++i) add(t + i);
  }
  for (; t < terms; ++t) add(t);
}

/// Sᵀ of the block, in base-2 units.
HWY_INLINE void scores(const FastKeys& block, const FastQueries& tile) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  for (std::int64_t j = 0; j < block.keys; j += kNumbers) {
    Vector sums[kNumbers][kVectors];
    // Adjacent rows are d lines for 8 keys: one per channel.
    multiply({.first = block.k + j * block.k_stride,
              .step = block.k_stride,
              .stride = 1,
              .ahead = block.k + (j + kNumbers) * block.k_stride,
              .ahead_stride = kNumbers},
             tile.queries, block.head_dim, sums);
    for (int i = 0; i < kNumbers; ++i) {
      for (int x = 0; x < kVectors; ++x) {
        hn::Store(sums[i][x], d, tile.weights + ((j + i) * kVectors + x) * n);
      }
    }
  }
}

/// Sets the scores that a query does not see to -inf.
HWY_INLINE void hide(const FastKeys& block, const FastQueries& tile) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  const Vector nothing = hn::Set(d, -std::numeric_limits<double>::infinity());
  for (int x = 0; x < kVectors; ++x) {
    const Vector begin = hn::Load(d, tile.run_begin + x * n);
    const Vector end = hn::Load(d, tile.run_end + x * n);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      const std::int64_t at = (j * kVectors + x) * n;
      const Vector key = hn::Set(d, static_cast<double>(block.first_key + j));
      const Vector score = hn::Load(d, tile.weights + at);
      const auto seen = hn::And(hn::Ge(key, begin), hn::Lt(key, end));
      const Vector kept = hn::IfThenElse(seen, score, nothing);
      const bool matrix = tile.hiding == Hiding::matrix;
      hn::Store(matrix ? hn::Add(kept, hn::Load(d, tile.hidden + at)) : kept, d, tile.weights + at);
    }
  }
}

/// Raises the maxima; `factor` becomes what they lower earlier weights by. True when any rose.
HWY_INLINE bool raise_max(const FastKeys& block, const FastQueries& tile) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  bool risen = false;
  for (int x = 0; x < kVectors; ++x) {
    const Vector before = hn::Load(d, tile.row_max + x * n);
    Vector even = before, odd = before;
    for (std::int64_t j = 0; j < block.keys; j += 2) {
      even = hn::Max(even, hn::Load(d, tile.weights + (j * kVectors + x) * n));
      odd = hn::Max(odd, hn::Load(d, tile.weights + ((j + 1) * kVectors + x) * n));
    }
    const Vector after = hn::Max(even, odd);
    risen = risen || !hn::AllFalse(d, hn::Gt(after, before));
    hn::Store(after, d, tile.row_max + x * n);
    // Two maxima of -inf give NaN and so a factor of 0, on sums that are 0.
    hn::Store(power_of_two(hn::Sub(before, after)), d, tile.factor + x * n);
  }
  return risen;
}

/// Weights from scores, and the row sums.
HWY_INLINE void weigh(const FastKeys& block, const FastQueries& tile, bool risen) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  for (int x = 0; x < kVectors; ++x) {
    const Vector shift = hn::Load(d, tile.row_max + x * n);
    Vector even = hn::Zero(d), odd = hn::Zero(d);
    for (std::int64_t j = 0; j < block.keys; j += 2) {
      double* first = tile.weights + (j * kVectors + x) * n;
      double* second = first + kVectors * n;
      const Vector a = power_of_two(hn::Sub(hn::Load(d, first), shift));
      const Vector b = power_of_two(hn::Sub(hn::Load(d, second), shift));
      hn::Store(a, d, first);
      hn::Store(b, d, second);
      even = hn::Add(even, a);
      odd = hn::Add(odd, b);
    }
    Vector before = hn::Load(d, tile.row_sum + x * n);
    if (risen) before = hn::Mul(before, hn::Load(d, tile.factor + x * n));
    hn::Store(hn::Add(before, hn::Add(even, odd)), d, tile.row_sum + x * n);
  }
}

/// acc = acc · factor + Vᵀ P, or acc + Vᵀ P where no maximum rose.
HWY_INLINE void add_values(const FastKeys& block, const FastQueries& tile, bool risen) {
  const Doubles d;
  const std::int64_t n = vector_lanes();
  Vector factor[kVectors];
  for (int x = 0; x < kVectors; ++x) {
    factor[x] = risen ? hn::Load(d, tile.factor + x * n) : hn::Set(d, 1.0);
  }
  for (std::int64_t c = 0; c < block.value_channels; c += kNumbers) {
    Vector sums[kNumbers][kVectors];
    multiply({.first = block.v + c,
              .step = 1,
              .stride = block.v_stride,
              .ahead = block.v + c + kNumbers,
              .ahead_stride = block.v_stride},
             tile.weights, block.keys, sums);
    for (int i = 0; i < kNumbers; ++i) {
      for (int x = 0; x < kVectors; ++x) {
        double* acc = tile.acc + ((c + i) * kVectors + x) * n;
        hn::Store(hn::MulAdd(hn::Load(d, acc), factor[x], sums[i][x]), d, acc);
      }
    }
  }
}

}  // namespace ringlab::fast::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
