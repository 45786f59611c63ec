#include "tests/emulator/machine/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ringlab::cuda::emulator {
namespace {

TEST(numbers, powers_of_two_are_off_by_at_most_two_steps_and_sometimes_by_one) {
  int off = 0;
  for (float x = -125.9f; x < 127; x += 0.0137f) {
    const double exact = std::exp2(static_cast<double>(x));
    const float nearest = static_cast<float>(exact);
    const double step = std::nextafter(nearest, 3e38f) - nearest;
    EXPECT_LE(std::abs(static_cast<double>(exp2_approx(x)) - exact), 2 * step) << x;
    off += exp2_approx(x) != nearest;
  }
  EXPECT_GT(off, 1000);
}

TEST(numbers, sums_by_atomics_lose_what_is_subnormal) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  EXPECT_EQ(flushed_sum(kSmallest, kSmallest / 2), kSmallest);
  EXPECT_EQ(flushed_sum(kSmallest / 2, 1), 1);
  EXPECT_EQ(flushed_sum(kSmallest, -1.5f * kSmallest), 0);
  EXPECT_EQ(flushed_sum(2 * kSmallest, -kSmallest), kSmallest);
}

TEST(numbers, powers_of_integers_and_of_limits_are_exact) {
  for (int x = -126; x < 128; ++x) {
    EXPECT_EQ(exp2_approx(static_cast<float>(x)), std::ldexp(1.0f, x));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp2_approx(-kInfinity), 0);
  EXPECT_EQ(exp2_approx(kInfinity), kInfinity);
  EXPECT_EQ(exp2_approx(-127), 0) << "subnormal results are 0";
  EXPECT_EQ(exp2_approx(1e-40f), 1);
  EXPECT_TRUE(std::isnan(exp2_approx(std::nanf(""))));
}

TEST(numbers, every_pair_of_small_floats_is_widened_exactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    BFloat16 bfloat;
    half.bits = bfloat.bits = static_cast<std::uint16_t>(bits);
    float pair[2];
    unpack(DType::f16, bits << 16 | bits, pair);
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    EXPECT_TRUE(same(pair[0], static_cast<float>(half)) && same(pair[1], pair[0])) << bits;
    EXPECT_TRUE(same(widen(DType::bf16, bfloat.bits), static_cast<float>(bfloat))) << bits;
  }
}

}  // namespace
}  // namespace ringlab::cuda::emulator
