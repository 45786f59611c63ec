// 2^x by multiply-adds, for weights that would overload the special function units.
#pragma once

#include <bit>
#include <cstdint>

#include "reference/core/host_device.h"

namespace ringlab::cuda {

/// Relative error of exp2_polynomial(), with all its roundings (tests, every float).
inline constexpr double kPolynomialError = 0x1p-13;

/// 2^x for x up to 100: x = n + r with n whole and |r| <= 1/2, and a cubic for 2^r, with the
/// least largest relative error of all that are 1 at 0. Below -127 it is 0, NaN stays NaN.
/// Eight or nine instructions, none of them of the special function units.
RINGLAB_HD inline float exp2_polynomial(float x) {
  constexpr float kWhole = 0x1.8p23f + 127;  // added: x is rounded, and its lowest bits are n + 127
  constexpr float kLeast = -127;             // 2^n is then made of an exponent of 0: zero
  const float at_least = x < kLeast ? kLeast : x;
  const float shifted = at_least + kWhole;
  const float r = at_least - (shifted - kWhole);
  const float power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(shifted) << 23);
  return (((0x1.c2a218p-5f * r + 0x1.f00c4ep-3f) * r + 0x1.62f5fap-1f) * r + 1) * power;
}

}  // namespace ringlab::cuda
