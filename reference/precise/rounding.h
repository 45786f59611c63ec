// Rounding from numbers of any precision to the grid of a floating-point format.
#pragma once

#include <optional>

#include "reference/core/dtype.h"
#include "reference/precise/interval.h"

namespace ringlab::precise {

/// The number of `dtype` nearest to x, ties to even; ±inf beyond the range as IEEE 754 has it. The
/// sign of a zero is that of x. `dtype` has infinities: f64, f32, f16 or bf16.
double nearest(DType dtype, mpfr_srcptr x);

/// The next larger number of `dtype` (zeros count as one); inf after the largest.
double next_up(DType dtype, double on_grid);

/// Halfway between a number and the next larger one, where what is nearest changes. After the
/// largest number, and before the smallest, it is where rounding to infinity begins.
Dyadic midpoint_above(DType dtype, double on_grid);

/// The number that everything inside rounds to, if that is one. Zeros of both signs are one number.
std::optional<double> common_nearest(DType dtype, const Interval& inside);

/// The neighbour of the two whose last significand bit is even; infinity next to the largest.
double even_one(DType dtype, double lower, double upper);

}  // namespace ringlab::precise
