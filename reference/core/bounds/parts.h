// Constants and terms that the bounds of numerics.h share.
#pragma once

#include <limits>

#include "reference/core/numerics.h"

namespace ringlab {

/// The bound where no promise can be made.
inline constexpr double kNoBound = std::numeric_limits<double>::infinity();
/// Factor above the rounding of the few dozen double operations that evaluate one bound.
inline constexpr double kBoundOutward = 1.0 + 0x1p-44;

/// The value, or +inf for NaN and for anything negative, which no bound is.
inline double no_promise_unless_valid(double bound) {
  return bound >= 0 ? bound * kBoundOutward : kNoBound;
}

/// Relative error of two roundings, one after the other.
inline double compounded(double first, double second) { return first + second * (1 + first); }

/// Half the least subnormal; the least subnormal where a double cannot hold the half.
double half_least(DType dtype);

/// Absolute error of one number of q or k that is scaled before it is multiplied; 0 where none is.
double prescaled_underflow(const NumericsProfile& profile);

/// Upper bounds of the terms of keys as they arrive over the wire, from the terms as they are sent.
ScoreTerms after_the_wire(const NumericsProfile& profile, ScoreTerms terms);

/// Error bound of the computed score of any key of the row, and so of the row maximum.
double largest_error(const NumericsProfile& profile, const ScoreTerms& terms);

}  // namespace ringlab
