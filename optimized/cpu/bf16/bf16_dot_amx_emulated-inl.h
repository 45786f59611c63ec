// The eight registers of AMX, emulated: TDPBF16PS as bf16_dot_amx.h describes it, number by number.
// For tests and planted mistakes, on any processor.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ringlab::cpu::bf16_dot {

class EmulatedTiles {
 public:
  template <int r>
  void load(const void* from, std::int64_t stride) {
    for (std::int64_t i = 0; i < 16; ++i) {
      std::memcpy(registers_[r][static_cast<std::size_t>(i)].data(),
                  static_cast<const char*>(from) + i * stride, 64);
    }
  }
  template <int r>
  void store(void* to, std::int64_t stride) {
    for (std::int64_t i = 0; i < 16; ++i) {
      std::memcpy(static_cast<char*>(to) + i * stride,
                  registers_[r][static_cast<std::size_t>(i)].data(), 64);
    }
  }
  template <int r>
  void zero() {
    registers_[r] = {};
  }
  template <int c, int a, int b>
  void dot() {
    for (std::size_t m = 0; m < 16; ++m) {
      float even[16] = {}, odd[16] = {};
      for (std::size_t t = 0; t < 16; ++t) {
        const std::uint32_t left = registers_[a][m][t];
        const float low = number(left << 16), high = number(left);
        for (std::size_t n = 0; n < 16; ++n) {
          const std::uint32_t right = registers_[b][t][n];
          even[n] = flushed(__builtin_fmaf(low, number(right << 16), even[n]));
          odd[n] = flushed(__builtin_fmaf(high, number(right), odd[n]));
        }
      }
      for (std::size_t n = 0; n < 16; ++n) {
        std::uint32_t& sum = registers_[c][m][n];
        const float before = flushed(std::bit_cast<float>(sum));
        sum = std::bit_cast<std::uint32_t>(flushed(before + flushed(even[n] + odd[n])));
      }
    }
  }

 private:
  /// x, or a zero of its sign where x is subnormal; by bits, so that the compiler can use vectors.
  static float flushed(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
  }
  /// The bf16 number in the high half of `bits`, as f32.
  static float number(std::uint32_t bits) {
    return flushed(std::bit_cast<float>(bits & 0xffff0000u));
  }

  std::array<std::array<std::array<std::uint32_t, 16>, 16>, 8> registers_ = {};
};

}  // namespace ringlab::cpu::bf16_dot
