// The register tile: a few numbers against a few vectors. Included once per target.
#if defined(RINGLAB_CPU_PRODUCT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_PRODUCT_TILE_INL_H_
#undef RINGLAB_CPU_PRODUCT_TILE_INL_H_
#else
#define RINGLAB_CPU_PRODUCT_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Real>
using Vector = hn::Vec<hn::ScalableTag<Real>>;

/// Vector registers of the processor: AVX-512 and Arm have 32.
inline constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;
/// Queries of a tile: this many vectors, one query per lane.
inline constexpr int kTileVectors = 3;
/// True where a vector goes on alone once the others of its tile see no more keys: it pays where
/// vectors have 16 queries.
inline constexpr bool kVectorsGoAlone = HWY_TARGET <= HWY_AVX3;
/// Rows of a full register tile: with 32 registers 8·3 sums, 3 columns and one number; with 16
/// registers 4·3.
inline constexpr int kTileRows = kRegisters == 32 ? 8 : 4;

template <class Real>
HWY_INLINE std::int64_t lanes() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>()));
}
template <class Real>
HWY_INLINE std::int64_t tile_width() {
  return kTileVectors * lanes<Real>();
}

/// The numbers of a matrix that lie side by side in memory: a row's, or a term's.
enum class SideBySide { terms, rows };

/// Element (row, term) at row · stride + term (terms side by side), or at row + term · stride.
template <SideBySide kSideBySide, class Real>
struct Factors {
  const Real* values;
  std::int64_t stride;
  std::int64_t row_stride() const { return kSideBySide == SideBySide::terms ? stride : 1; }
  std::int64_t term_stride() const { return kSideBySide == SideBySide::terms ? 1 : stride; }
};

/// Terms of a turn of the loop: saves instructions that count and jump beside the multiply-adds,
/// most where both share ports, as on Intel's, and with 16 registers. For Arm g++ 12 spills.
inline constexpr int kTermsAtOnce = HWY_ARCH_ARM_A64 ? 1 : 4;

/// sum + column · factor, rounded once, in the register of the sum. Where all registers are taken,
/// compilers put the result where `factor` was, or read all factors at once, then run out of
/// registers.
#if HWY_ARCH_ARM_A64
template <class V>
HWY_INLINE V add_product(V sum, V column, hn::TFromV<V> factor) {
  if constexpr (sizeof(factor) == 4) {
    asm("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(sum.raw) : "w"(column.raw), "w"(factor));
  } else {
    asm("fmla %0.2d, %1.2d, %2.d[0]" : "+w"(sum.raw) : "w"(column.raw), "w"(factor));
  }
  return sum;
}
#else
template <class V>
HWY_INLINE V add_product(V sum, V column, V factor) {
#if HWY_TARGET == HWY_AVX2
  auto result = sum.raw;
  if constexpr (sizeof(hn::TFromV<V>) == 4) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(result) : "x"(column.raw), "x"(factor.raw));
  } else {
    asm("vfmadd231pd %2, %1, %0" : "+x"(result) : "x"(column.raw), "x"(factor.raw));
  }
  return V{result};
#else
  return hn::MulAdd(column, factor, sum);
#endif
}
#endif

/// A factor as add_product() takes it.
template <class D>
HWY_INLINE auto as_factor([[maybe_unused]] D d, hn::TFromD<D> number) {
#if HWY_ARCH_ARM_A64
  return number;  // FMLA takes it from a lane
#else
  return hn::Set(d, number);
#endif
}

/// The number of terms that factors are fetched ahead where each term has a line of its own;
/// measured, see docs/performance.md.
inline constexpr std::int64_t kTermsAhead = 64;

/// Asks for factors that are read soon after term t, the `turn`-th of a turn of the loop, of these
/// kRows rows: factors of the next rows, a line at a time, where terms lie side by side, else
/// factors of a later term, which only wide vectors wait for. The address may lie beyond the
/// matrix: a prefetch does not fault.
template <int kRows, SideBySide kSideBySide, class Real>
struct FetchAhead {
  const Factors<kSideBySide, Real>& factors;
  // Inlined always: else g++ 12 sees a function that does nothing, and drops its calls.
  HWY_INLINE void operator()(std::int64_t t, int turn) const {
    constexpr int kTermsOfLine = 64 / (kRows * static_cast<int>(sizeof(Real)));
    constexpr bool kTerms = kSideBySide == SideBySide::terms;
    if (kTerms ? turn % kTermsOfLine != 0 : HWY_TARGET > HWY_AVX3) return;
    const std::int64_t offset =
        kTerms ? kRows * (factors.stride + t) : (t + kTermsAhead) * factors.stride;
    hwy::Prefetch(
        reinterpret_cast<const Real*>(reinterpret_cast<std::uintptr_t>(factors.values) +
                                      static_cast<std::uintptr_t>(offset) * sizeof(Real)));
  }
};

/// Rows of numbers that lie side by side, `stride` numbers from row to row.
template <class Real>
struct Rows {
  const Real* values;
  std::int64_t stride;
  Rows from(std::int64_t row) const { return {values + row * stride, stride}; }
  Rows channel(std::int64_t c) const { return {values + c, stride}; }
  /// As factors whose terms are the numbers of a row.
  Factors<SideBySide::terms, Real> by_row() const { return {values, stride}; }
  /// As factors whose terms are the rows.
  Factors<SideBySide::rows, Real> by_number() const { return {values, stride}; }
};

/// The fate of the sums: they replace what is in memory, or they go on from it.
enum class Result { replaced, added };

/// Steps of sums in registers before and after products are added: none. Types with such steps
/// derive from it.
struct JustProducts {
  /// Sums[kRows][kVectors] as they were in memory.
  template <class Sums>
  HWY_INLINE void begin(Sums&) const {}
  /// The number that is stored of vector x of a row.
  template <class V>
  HWY_INLINE V end(int, int, V sum) const {
    return sum;
  }
};

/// Adds factors times columns to sums that are in registers.
template <int kRows, int kVectors, class Real>
struct Terms {
  const Real* rows[kRows];  ///< the factors of each row
  std::int64_t term_stride;
  const Real* HWY_RESTRICT columns;  ///< aligned
  std::int64_t column_stride;

  /// sums[i][x] += Σ_t rows[i](t) · columns(t)[x], t = 0 … terms-1 in this order with one rounding
  /// each; fetch(t, turn) comes before every term, the turn-th of a turn of the loop.
  template <class Fetch>
  HWY_INLINE void add_to(Vector<Real> (&sums)[kRows][kVectors], std::int64_t terms,
                         const Fetch& fetch) const {
    std::int64_t t = 0;
    for (; t + kTermsAtOnce <= terms; t += kTermsAtOnce) {
      for (int turn = 0; turn < kTermsAtOnce; ++turn) {
        fetch(t + turn, turn);
        add(t + turn, sums);
      }
    }
    for (int left = static_cast<int>(terms - t); left > 0; --left) add(t++, sums);
  }

 private:
  HWY_INLINE void add(std::int64_t t, Vector<Real> (&sums)[kRows][kVectors]) const {
    const hn::ScalableTag<Real> d;
    Vector<Real> column[kVectors];
    for (int x = 0; x < kVectors; ++x) {
      column[x] = hn::Load(d, columns + t * column_stride + x * lanes<Real>());
    }
    for (int i = 0; i < kRows; ++i) {
      const auto factor = as_factor(d, rows[i][t * term_stride]);
      for (int x = 0; x < kVectors; ++x) sums[i][x] = add_product(sums[i][x], column[x], factor);
    }
  }
};

/// out[row][lane] = Σ_t factors(row, t) · columns[t][lane], or out += Σ…; rows 0 … kRows-1, summed
/// in the order of t with one rounding per term. kVectors of lanes; columns and out have tile_width()
/// lanes a row, aligned. `besides`: see JustProducts.
template <int kRows, int kVectors, Result kResult, SideBySide kSideBySide, class Real,
          class Besides>
HWY_INLINE void multiply_rows(const Factors<kSideBySide, Real>& factors,
                              const Real* HWY_RESTRICT columns, std::int64_t terms,
                              Real* HWY_RESTRICT out, Besides& besides) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>(), width = tile_width<Real>();
  Vector<Real> sums[kRows][kVectors];
  Terms<kRows, kVectors, Real> products{{}, factors.term_stride(), columns, width};
  for (int i = 0; i < kRows; ++i) {
    products.rows[i] = factors.values + i * factors.row_stride();
    for (int x = 0; x < kVectors; ++x) {
      sums[i][x] = kResult == Result::added ? hn::Load(d, out + i * width + x * n) : hn::Zero(d);
    }
  }
  if constexpr (kResult == Result::added) besides.begin(sums);
  products.add_to(sums, terms, FetchAhead<kRows, kSideBySide, Real>{factors});
  for (int i = 0; i < kRows; ++i) {
    for (int x = 0; x < kVectors; ++x) {
      hn::Store(besides.end(i, x, sums[i][x]), d, out + i * width + x * n);
    }
  }
}

/// multiply_rows for any number of rows: full register tiles, then smaller ones.
template <Result kResult, int kVectors = kTileVectors, SideBySide kSideBySide, class Real,
          class Besides>
HWY_INLINE void multiply(Factors<kSideBySide, Real> factors, std::int64_t rows, const Real* columns,
                         std::int64_t terms, Real* out, Besides& besides) {
  const auto advance = [&](std::int64_t by) {
    factors.values += by * factors.row_stride();
    out += by * tile_width<Real>();
  };
  for (; rows >= kTileRows; rows -= kTileRows) {
    multiply_rows<kTileRows, kVectors, kResult>(factors, columns, terms, out, besides);
    advance(kTileRows);
  }
  for (; rows >= 2; rows -= 2) {
    multiply_rows<2, kVectors, kResult>(factors, columns, terms, out, besides);
    advance(2);
  }
  if (rows == 1) multiply_rows<1, kVectors, kResult>(factors, columns, terms, out, besides);
}
template <Result kResult, SideBySide kSideBySide, class Real>
HWY_INLINE void multiply(Factors<kSideBySide, Real> factors, std::int64_t rows, const Real* columns,
                         std::int64_t terms, Real* out) {
  const JustProducts besides;
  multiply<kResult>(factors, rows, columns, terms, out, besides);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
