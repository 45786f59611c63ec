// Sums and dot products in double that keep what each rounding loses.
//
// Source: Neumaier 1974; Ogita, Rump & Oishi 2005 (Sum2, Dot2). With the lost parts added up on
// their own, a sum of n terms x has the error u|Σx| + γ²Σ|x|, as if it were computed in twice the
// precision and rounded once. Needs -ffp-contract=off and round to nearest.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/core/tensor.h"

namespace ringlab {

inline constexpr double kUnitRoundoff = 0x1p-53;
/// A factor that covers what a bound loses where it is itself summed in plain doubles.
inline constexpr double kOutward = 1 + 0x1p-40;
/// Absolute error of one double operation whose result is below the normal range.
inline constexpr double kUnderflow = 0x1p-1074;
/// n · kUnderflow, exactly, for n from 0 to 2^52. Not multiplied: a product that is subnormal costs
/// some processors 150 cycles.
inline double underflow_of(std::int64_t n) { return std::bit_cast<double>(n); }

/// high + low is the value; low is what the roundings of high lost.
struct DoubleSum {
  double high = 0;
  double low = 0;

  /// Knuth's two-sum: no branch, so loops over channels vectorise.
  void add(double x) {
    const double sum = high + x;
    const double x_part = sum - high;
    low += (high - (sum - x_part)) + (x - x_part);
    high = sum;
  }
  double value() const { return high + low; }
};

/// The bound, or +inf where it came out as no number: then nothing is promised.
inline double promised(double bound) {
  return bound >= 0 ? bound : std::numeric_limits<double>::infinity();
}

/// γ² of a compensated sum of `count` terms, generous: error <= u|value| + this · Σ|terms|.
double compensated_rounding(std::int64_t count);

/// Σ x_c y_c, and Σ |x_c y_c| rounded plainly.
struct Dot {
  double value = 0;
  double magnitude = 0;

  /// |value - exact dot product| is at most this.
  double error(std::int64_t count) const;
};

/// The compensated dot product of `count` pairs. `exact_products` says that no product x_c y_c
/// rounds, true for numbers of at most 26 significant bits; it saves the fused multiply-adds.
Dot dot(const double* x, const double* y, std::int64_t count, bool exact_products);

/// True when every value (NaN aside) survives a round trip through float: products of two such
/// values are exact in double.
bool fits_float(const TensorView<const double>& tensor);

/// `count` sums of at most `terms` products each, with running bounds of their errors.
class BoundedSums {
 public:
  BoundedSums(std::int64_t count, std::int64_t terms);

  /// sums[c] += factor · values[c], where |factor - exact factor| <= factor_error.
  void add(double factor, double factor_error, const double* values);
  double value(std::int64_t c) const;
  /// Bound of |value(c) - exact sum|; 0 when nothing was added.
  double error(std::int64_t c) const;
  void clear();

 private:
  double added_ = 0;  ///< products per sum so far
  double rounding_;   ///< of one product and of the compensated sum, relative to Σ |products|
  std::vector<double> high_, low_, error_;
};

/// The channels of one token as adjacent doubles: a pointer into the tensor where they are, else a
/// copy in `buffer`. Only what is asked for is read: masked tokens may hold anything.
const double* channels_of(const TensorView<const double>& tensor, std::int64_t batch,
                          std::int64_t head, std::int64_t token, std::vector<double>& buffer);

}  // namespace ringlab
