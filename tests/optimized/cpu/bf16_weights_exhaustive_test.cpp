// The weights of the kernel that multiplies bf16, for every float at or below 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "optimized/cpu/bf16/bf16_dot_tile.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::cpu {
namespace {

constexpr std::uint32_t kMinusZero = 0x80000000u, kMinusInfinity = 0xff800000u;
constexpr std::uint32_t kBatch = 1 << 16;

class Bf16Weights : public testing::Test {
 protected:
  void SetUp() override {
    if (!available_vectors().front().ends_with("bf16")) GTEST_SKIP() << "no bf16 products here";
  }
};

/// Worst relative error over the floats with the bits begin … begin+kBatch-1; below the normal
/// range it counts in units of the least normal number.
double worst_error(std::uint32_t begin) {
  std::vector<float> x(kBatch), y(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    x[i] = std::bit_cast<float>(begin + static_cast<std::uint32_t>(i));
  }
  bf16_dot::weights_of(x.data(), kBatch, y.data());
  double worst = 0;
  for (std::size_t i = 0; i < kBatch; ++i) {
    const double exact = x[i] < -200 ? 0 : std::exp2(static_cast<double>(x[i]));
    const double error = std::abs(y[i] - exact) / std::max(exact, 0x1p-126);
    if (!(error <= worst)) worst = error;
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

TEST_F(Bf16Weights, of_every_float_at_or_below_0_are_within_the_declared_error) {
  std::vector<double> worst(2, 0);
  std::atomic<int> workers = 0;
  share_out((kMinusInfinity - kMinusZero) / kBatch, 2, [&] {
    const auto mine = static_cast<std::size_t>(workers++);
    return [&, mine](std::int64_t batch) {
      const std::uint32_t first = static_cast<std::uint32_t>(batch) * kBatch;
      worst[mine] = std::max(worst[mine], worst_error(kMinusZero + first));
    };
  });
  const double all = std::max(worst[0], worst[1]);
  RecordProperty("worst_relative_error", std::to_string(all * 1e6) + "e-6");
  EXPECT_LE(all, bf16_dot::kWeightError);
  EXPECT_GT(all, bf16_dot::kWeightError / 2) << "the declared error is the least power of two";
}

TEST_F(Bf16Weights, of_0_is_1_and_of_minus_infinity_0_and_nan_stays_nan) {
  std::vector<float> x(16), y(16);
  x[1] = -0.0f;
  x[2] = -std::numeric_limits<float>::infinity();
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = -std::numeric_limits<float>::max();
  bf16_dot::weights_of(x.data(), 16, y.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 0);
}

}  // namespace
}  // namespace ringlab::cpu
