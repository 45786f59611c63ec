#include "reference/precise/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringlab::precise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Exponent of the distance to the next number away from zero, for numbers in
/// [2^(exponent-1), 2^exponent).
long spacing_exponent(DType dtype, long exponent) {
  const DTypeInfo& info = dtype_info(dtype);
  const long least = std::ilogb(info.min_subnormal);
  return std::max(exponent - info.significand_bits, least);
}

double spacing_above(DType dtype, double magnitude) {
  int exponent = -100000;  // of 0: below all
  if (magnitude != 0) std::frexp(magnitude, &exponent);
  return std::ldexp(1.0, static_cast<int>(spacing_exponent(dtype, exponent)));
}

/// The next smaller magnitude, of a positive one.
double next_down_magnitude(DType dtype, double magnitude) {
  if (std::isinf(magnitude)) return dtype_info(dtype).max_finite;
  const double below = spacing_above(dtype, magnitude / 2);  // of [2^k/2, 2^k) at a power of two
  int exponent = 0;
  const bool power_of_two = std::frexp(magnitude, &exponent) == 0.5;
  return magnitude - (power_of_two ? below : spacing_above(dtype, magnitude));
}

double next_up_magnitude(DType dtype, double magnitude) {
  if (magnitude >= dtype_info(dtype).max_finite) return kInfinity;
  return magnitude + spacing_above(dtype, magnitude);
}

double to_grid(DType dtype, mpfr_srcptr x) {
  const long exponent = mpfr_get_exp(x);
  const long spacing = spacing_exponent(dtype, exponent);
  if (exponent < spacing) return 0;  // below half of the smallest number
  if (exponent == spacing) {         // in [half, whole) of it; a tie goes to zero
    const bool tie = mpfr_cmp_si_2exp(x, mpfr_sgn(x), exponent - 1) == 0;
    return tie ? 0 : std::ldexp(mpfr_sgn(x), static_cast<int>(spacing));
  }
  if (exponent > 2000) return mpfr_sgn(x) * kInfinity;
  mpfr_t rounded;
  mpfr_init2(rounded, exponent - spacing);
  mpfr_set(rounded, x, MPFR_RNDN);
  const double value = mpfr_get_d(rounded, MPFR_RNDN);
  mpfr_clear(rounded);
  return std::abs(value) > dtype_info(dtype).max_finite ? std::copysign(kInfinity, value) : value;
}

}  // namespace

double nearest(DType dtype, mpfr_srcptr x) {
  if (!mpfr_regular_p(x)) return mpfr_get_d(x, MPFR_RNDN);
  const double value = to_grid(dtype, x);
  return value == 0 && mpfr_sgn(x) < 0 ? -0.0 : value;
}

double next_up(DType dtype, double on_grid) {
  return on_grid >= 0 ? next_up_magnitude(dtype, on_grid) : -next_down_magnitude(dtype, -on_grid);
}

Dyadic midpoint_above(DType dtype, double on_grid) {
  const double largest = dtype_info(dtype).max_finite;
  const double lower = std::max(on_grid, -largest),
               upper = std::min(next_up(dtype, on_grid), largest);
  const Dyadic half(mpz_class(1), -1);
  if (lower < upper) return (Dyadic(lower) + Dyadic(upper)) * half;
  const Dyadic half_step = Dyadic(spacing_above(dtype, largest)) * half;
  return lower > 0 ? Dyadic(lower) + half_step : Dyadic(lower) - half_step;
}

std::optional<double> common_nearest(DType dtype, const Interval& inside) {
  const double lower = nearest(dtype, inside.lower());
  const double upper = nearest(dtype, inside.upper());
  if (!(lower == upper)) return std::nullopt;
  return lower;
}

double even_one(DType dtype, double lower, double upper) {
  if (std::isinf(lower)) return lower;
  if (std::isinf(upper)) return upper;
  const double spacing =
      std::min(spacing_above(dtype, std::abs(lower)), spacing_above(dtype, std::abs(upper)));
  return std::fmod(lower / spacing, 2) == 0 ? lower : upper;
}

}  // namespace ringlab::precise
