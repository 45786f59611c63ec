// Arithmetic in bfloat16 for mutants that lose precision. All rounding is on integers: g++ 12.2
// drops masks of float bits that a conditional chooses.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/core/small_float.h"

namespace ringlab::mutants {

inline float rounded_to_bf16(float x) { return static_cast<float>(BFloat16(x)); }

/// Rounds towards zero.
[[gnu::noinline]] inline float truncated_to_bf16(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000u);
}

inline void round_row_to_bf16(float* row, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) row[c] = rounded_to_bf16(row[c]);
}

/// Σ bf16(scale · a_c) b_c.
template <class A>
float prescaled_dot(const A* a, const float* b, std::int64_t count, double scale) {
  float sum = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    sum += rounded_to_bf16(static_cast<float>(scale) * static_cast<float>(a[c])) * b[c];
  }
  return sum;
}

/// Σ a_c b_c of products that end at the greatest number of float16.
template <class A, class B>
B saturating_dot(const A* a, const B* b, std::int64_t count) {
  B sum = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    sum += std::clamp(static_cast<B>(a[c]) * b[c], B(-65504), B(65504));
  }
  return sum;
}

}  // namespace ringlab::mutants
