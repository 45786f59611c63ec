// The 16-bit and 8-bit floating-point formats: exact widening, and rounding to nearest even.
//
// All arithmetic is on integers: g++ 12.2 drops the mask of a float whose bits were masked and that
// is then chosen by a conditional, so a rounding written in floats can silently become a no-op.
// tests/reference/core/small_float_exhaustive_test.cpp compares every input there is. The bit casts
// are built-ins because nvcc does not call std::bit_cast from device code.
#pragma once

#include <cstdint>

#include "reference/core/host_device.h"

namespace ringlab {

/// A binary format with 1 sign bit. `finite_top` says that the largest exponent holds ordinary
/// numbers and that only the all-ones pattern is NaN (the OCP "e4m3fn" convention).
template <int kExponentBits, int kMantissaBits, bool kFiniteTop>
struct SmallFormat {
  static constexpr int exponent_bits = kExponentBits;
  static constexpr int mantissa_bits = kMantissaBits;
  static constexpr bool finite_top = kFiniteTop;
  static constexpr int bias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int sign_shift = kExponentBits + kMantissaBits;
  static constexpr std::uint32_t magnitude_mask = (1u << sign_shift) - 1;
  static constexpr std::uint32_t top_exponent = ((1u << kExponentBits) - 1) << kMantissaBits;
  static constexpr std::uint32_t overflow_pattern = kFiniteTop ? magnitude_mask : top_exponent;
  static constexpr std::uint32_t nan_pattern =
      kFiniteTop ? magnitude_mask : (top_exponent | (1u << (kMantissaBits - 1)));
  static constexpr std::uint32_t max_finite_pattern =
      kFiniteTop ? magnitude_mask - 1 : top_exponent - 1;
};

using HalfFormat = SmallFormat<5, 10, false>;
using BFloat16Format = SmallFormat<8, 7, false>;
using E4M3Format = SmallFormat<4, 3, true>;
using E5M2Format = SmallFormat<5, 2, false>;

/// Bits of the value of Format nearest to x, ties to even, straight from double (one rounding).
template <class Format>
RINGLAB_HD constexpr std::uint32_t encode_small(double x) {
  const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, x);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << Format::sign_shift;
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) return sign | Format::nan_pattern;
  if (magnitude == 0x7ff0000000000000ull) return sign | Format::overflow_pattern;
  if (magnitude < 0x0010000000000000ull)
    return sign;  // zero, or a double subnormal: far below half
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const std::uint64_t significand = (magnitude & 0x000fffffffffffffull) | 0x0010000000000000ull;
  // Subnormal results keep fewer bits: the exponent is pinned to the smallest normal one.
  const int pinned = exponent < 1 - Format::bias ? 1 - Format::bias : exponent;
  const int drop = 52 - Format::mantissa_bits + (pinned - exponent);
  if (drop > 54) return sign;
  const std::uint64_t kept = significand >> drop;
  const std::uint64_t rest = significand & ((1ull << drop) - 1);
  const std::uint64_t half = 1ull << (drop - 1);
  const std::uint64_t up = (rest > half || (rest == half && (kept & 1u))) ? 1u : 0u;
  // The hidden bit of `kept` adds one to the exponent field, and so does a carry out of rounding.
  const std::int64_t field = static_cast<std::int64_t>(pinned + Format::bias - 1)
                             << Format::mantissa_bits;
  const std::int64_t pattern = field + static_cast<std::int64_t>(kept + up);
  if (pattern > static_cast<std::int64_t>(Format::max_finite_pattern)) {
    return sign | Format::overflow_pattern;
  }
  return sign | static_cast<std::uint32_t>(pattern);
}

/// The exact value of a bit pattern.
template <class Format>
RINGLAB_HD constexpr double decode_small(std::uint32_t bits) {
  const std::uint64_t sign = static_cast<std::uint64_t>((bits >> Format::sign_shift) & 1u) << 63;
  const std::uint32_t magnitude = bits & Format::magnitude_mask;
  const bool is_nan =
      Format::finite_top ? magnitude == Format::nan_pattern : magnitude > Format::top_exponent;
  if (is_nan) return __builtin_bit_cast(double, sign | 0x7ff8000000000000ull);
  if (!Format::finite_top && magnitude == Format::top_exponent) {
    return __builtin_bit_cast(double, sign | 0x7ff0000000000000ull);
  }
  const std::uint32_t exponent = magnitude >> Format::mantissa_bits;
  std::uint64_t significand = magnitude & ((1u << Format::mantissa_bits) - 1);
  if (magnitude == 0) return __builtin_bit_cast(double, sign);
  int power = static_cast<int>(exponent) - Format::bias;
  if (exponent == 0) {  // subnormal: shift up until the hidden bit appears
    power = 1 - Format::bias;
    while (!(significand >> Format::mantissa_bits)) {
      significand <<= 1;
      --power;
    }
    significand &= (1u << Format::mantissa_bits) - 1;
  }
  return __builtin_bit_cast(double, sign | static_cast<std::uint64_t>(power + 1023) << 52 |
                                        significand << (52 - Format::mantissa_bits));
}

/// A stored small float. Widening is exact; narrowing rounds to nearest even.
template <class FormatType, class BitsType>
struct SmallFloat {
  using Format = FormatType;
  BitsType bits = 0;

  SmallFloat() = default;
  RINGLAB_HD explicit constexpr SmallFloat(double x)
      : bits(static_cast<BitsType>(encode_small<Format>(x))) {}
  RINGLAB_HD explicit constexpr operator double() const { return decode_small<Format>(bits); }
  RINGLAB_HD explicit constexpr operator float() const {
    return static_cast<float>(decode_small<Format>(bits));
  }
};

using Half = SmallFloat<HalfFormat, std::uint16_t>;
using BFloat16 = SmallFloat<BFloat16Format, std::uint16_t>;
using Fp8E4M3 = SmallFloat<E4M3Format, std::uint8_t>;
using Fp8E5M2 = SmallFloat<E5M2Format, std::uint8_t>;

}  // namespace ringlab
