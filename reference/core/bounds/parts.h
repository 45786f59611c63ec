// What the bounds of numerics.h have in common.
#pragma once

#include <limits>

#include "reference/core/numerics.h"

namespace ringlab {

/// Where no promise can be made.
inline constexpr double kNoBound = std::numeric_limits<double>::infinity();
/// More than the rounding of the few dozen double operations that evaluate one bound.
inline constexpr double kBoundOutward = 1.0 + 0x1p-44;

/// The value, or +inf for NaN and for anything negative, which no bound is.
inline double no_promise_unless_valid(double bound) {
  return bound >= 0 ? bound * kBoundOutward : kNoBound;
}

/// Half the least subnormal; the least subnormal where a double cannot hold the half.
double half_least(DType dtype);

/// Upper bounds of what the score of the keys that arrived has, from those of the keys that left.
ScoreTerms after_the_wire(const NumericsProfile& profile, ScoreTerms terms);

/// How far the computed score of any key of the row may be off, and so their maximum.
double largest_error(const NumericsProfile& profile, const ScoreTerms& terms);

}  // namespace ringlab
