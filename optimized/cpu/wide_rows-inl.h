// Rows of keys, values or queries as the kernels read them. Included once per target.
#if defined(RINGLAB_CPU_WIDE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_WIDE_ROWS_INL_H_
#undef RINGLAB_CPU_WIDE_ROWS_INL_H_
#else
#define RINGLAB_CPU_WIDE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/product_tile-inl.h"
#include "optimized/cpu/widen-inl.h"
#include "reference/core/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// A number that would spoil a product with a weight of 0: infinite, or NaN.
template <class Real>
struct Special {
  std::int64_t row, channel;
  Real value;
};

/// Sets the numbers of `rows` rows that are not finite to 0 and returns them.
template <class Real>
std::vector<Special<Real>> set_specials_apart(Real* values, std::int64_t rows,
                                              std::int64_t channels, std::int64_t stride) {
  std::vector<Special<Real>> specials;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      Real& value = values[row * stride + c];
      if (std::isfinite(value)) continue;
      specials.push_back({row, c, value});
      value = 0;
    }
  }
  return specials;
}

/// Dense rows in the type that kernels compute in; read where they lie if they have that type.
template <class Element>
class WideRows {
 public:
  using Real = Accumulator<Element>;

  WideRows(std::int64_t most_rows, std::int64_t channels)
      : most_(most_rows),
        channels_(channels),
        stride_(channels + gap(channels)),
        wide_(kInPlace ? nullptr : aligned_array<Real>(most_ * stride_)) {
    if (wide_) std::fill_n(wide_.get(), most_ * stride_, Real(0));  // the gaps, too
  }

  void load(const Element* from, std::int64_t rows) {
    rows_ = rows;
    specials_.clear();
    if constexpr (kInPlace) {
      raw_ = from;
    } else {
      raw_ = widen(from);
    }
    finite_ = raw_;
  }
  /// Takes the numbers that are not finite out of finite(). Returns whether raw() has none either.
  bool make_finite() {
    if (all_finite(raw_, rows_ * stride_)) return true;
    if (!cleaned_) cleaned_ = aligned_array<Real>(most_ * stride_);
    std::copy(raw_, raw_ + rows_ * stride_, cleaned_.get());
    specials_ = set_specials_apart(cleaned_.get(), rows_, channels_, stride_);
    finite_ = cleaned_.get();
    return false;
  }
  Rows<Real> raw(std::int64_t row) const { return Rows<Real>{raw_, stride_}.from(row); }
  Rows<Real> finite(std::int64_t row) const { return Rows<Real>{finite_, stride_}.from(row); }

  /// Adds the numbers that finite() lacks of rows first … first+count-1: weights (count, width)
  /// times them, to sums (channels, width), where the weight is not 0.
  void add_specials(std::int64_t first, std::int64_t count, const Real* weights, Real* sums,
                    std::int64_t width = tile_width<Real>()) const {
    for (const Special<Real>& special : specials_) {
      if (special.row < first || special.row >= first + count) continue;
      const Real* const weight = weights + (special.row - first) * width;
      Real* const sum = sums + special.channel * width;
      for (std::int64_t lane = 0; lane < width; ++lane) {
        if (weight[lane] != 0) sum[lane] += weight[lane] * special.value;
      }
    }
  }

 private:
  static constexpr bool kInPlace = std::is_same_v<Element, Real>;

  /// Numbers from the end of a row to the next one. Rows of whole 512 bytes are set apart by a line:
  /// else the rows of a block meet in a few sets of the first-level cache, and register tiles of 4
  /// channels read every line several times.
  static std::int64_t gap(std::int64_t channels) {
    constexpr std::int64_t kLine = 64 / sizeof(Real);
    const bool meet = HWY_TARGET > HWY_AVX3 && channels % (8 * kLine) == 0;
    return !kInPlace && meet ? kLine : 0;
  }
  const Real* widen(const Element* from) {
    if (stride_ == channels_) {
      widen_all(from, rows_ * channels_, wide_.get());
    } else {
      for (std::int64_t row = 0; row < rows_; ++row) {
        widen_all(from + row * channels_, channels_, wide_.get() + row * stride_);
      }
    }
    return wide_.get();
  }

  std::int64_t most_, channels_, stride_;
  AlignedArray<Real> wide_, cleaned_;
  const Real* raw_ = nullptr;
  const Real* finite_ = nullptr;
  std::int64_t rows_ = 0;
  std::vector<Special<Real>> specials_;
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
