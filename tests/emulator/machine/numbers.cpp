#include "tests/emulator/machine/numbers.h"

#include <cmath>
#include <limits>
#include <vector>

namespace ringlab::cuda::emulator {
namespace {

std::vector<float> half_values() {
  std::vector<float> values(1 << 16);
  for (std::size_t bits = 0; bits < values.size(); ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    values[bits] = static_cast<float>(half);
  }
  return values;
}

/// A step of -1, 0 or 1 that looks random in x.
int step_of(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  return static_cast<int>((bits * 0x9e3779b1u >> 7) % 3) - 1;
}

/// x, or 0 with its sign where x is subnormal.
float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

}  // namespace

float widen(DType type, std::uint16_t bits) {
  static const std::vector<float> halves = half_values();
  return type == DType::f16 ? halves[bits]
                            : __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

void unpack(DType type, std::uint32_t pair, float* values) {
  values[0] = widen(type, static_cast<std::uint16_t>(pair & 0xffffu));
  values[1] = widen(type, static_cast<std::uint16_t>(pair >> 16));
}

float flushed_sum(float a, float b) { return flushed(flushed(a) + flushed(b)); }

float exp2_approx(float x) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (std::abs(x) < kSmallest) x = 0;
  float power = static_cast<float>(std::exp2(static_cast<double>(x)));
  if (std::isfinite(power) && x != std::floor(x)) {
    const int step = step_of(x);
    if (step != 0) power = std::nextafter(power, step > 0 ? kInfinity : 0.0f);
  }
  return power < kSmallest ? 0.0f : power;  // NaN stays
}

}  // namespace ringlab::cuda::emulator
