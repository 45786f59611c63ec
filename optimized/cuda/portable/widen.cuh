// Numbers of 16 bits as f32, exactly.
#pragma once

#include <cstdint>

#include "optimized/cuda/device_code.h"

namespace ringlab::cuda {

RINGLAB_KERNEL_CODE float widen(BFloat16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}
/// Moved to their places in f32, the bits are those of 2^-112 times the number, subnormals
/// included.
RINGLAB_KERNEL_CODE float widen(Half x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16, magnitude = (x.bits & 0x7fffu) << 13;
  const float value = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  const bool finite = (x.bits & 0x7c00u) != 0x7c00u;
  const std::uint32_t bits =
      finite ? __builtin_bit_cast(std::uint32_t, value) : magnitude | 0x7f800000u;
  return __builtin_bit_cast(float, sign | bits);
}

}  // namespace ringlab::cuda
