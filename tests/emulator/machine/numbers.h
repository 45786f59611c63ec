// Arithmetic as a GPU does it.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"

namespace ringlab::cuda::emulator {

/// The value of 16 bits of `type`, f16 or bf16.
float widen(DType type, std::uint16_t bits);
/// The values of both halves, the low one first.
void unpack(DType type, std::uint32_t pair, float* values);
/// a + b as atomics add: subnormal numbers and sums count as 0.
float flushed_sum(float a, float b);
/// 2^x, rounded to nearest; where x is no integer up to one step more off, depending on x: a GPU
/// may be off by two. Subnormal arguments and results count as 0.
float exp2_approx(float x);

}  // namespace ringlab::cuda::emulator
