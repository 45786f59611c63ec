// ex2.approx on a device, over every float that weights are powers of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/device_code.h"
#include "optimized/cuda/kernel_profile.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/device/guarded.h"

namespace ringlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMinusZero = 0x80000000u, kMinus126 = 0xc2fc0000u;
constexpr unsigned kZero = 0, k8 = 0x41000000u;  // Hopper's weights are up to 2^8

/// worst: the largest relative error of all floats whose bits are first … last, as the bits of a
/// float, which are in the order of the numbers.
__global__ void worst_error_kernel(unsigned first, unsigned last, unsigned* worst) {
  float mine = 0;
  const unsigned step = gridDim.x * kThreads;
  for (unsigned long long bits = first + blockIdx.x * kThreads + threadIdx.x; bits <= last;
       bits += step) {
    const float x = __uint_as_float(static_cast<unsigned>(bits));
    const double exact = exp2(static_cast<double>(x));
    const auto error = static_cast<float>(fabs(static_cast<double>(exp2_approx(x)) / exact - 1));
    mine = error > mine || error != error ? error : mine;
  }
  atomicMax(worst, __float_as_uint(mine));
}

__global__ void powers_kernel(const float* of, float* powers, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    powers[i] = exp2_approx(of[i]);
  }
}

class Powers : public DeviceTest<Needs::any_kernel> {};

TEST_F(Powers, of_two_are_as_near_as_kernel_profile_promises_for_every_float_that_weights_take) {
  const std::vector<unsigned> none = {0};
  const Guarded<unsigned> worst(none);
  worst_error_kernel<<<4096, kThreads>>>(kMinusZero, kMinus126, worst.data());
  worst_error_kernel<<<4096, kThreads>>>(kZero, k8, worst.data());
  check_cuda(cudaGetLastError(), "launch", "worst_error");
  wait_for_device(0);
  float error = 0;
  const unsigned bits = worst.values("worst")[0];
  std::memcpy(&error, &bits, sizeof error);
  RecordProperty("worst_relative_error_in_2_to_minus_24", std::to_string(error * 0x1p24));
  EXPECT_GT(error, 0) << "nothing was measured";
  // Both the error and what it is compared with were rounded to a float.
  EXPECT_LE(static_cast<double>(error), kernel_profile(DType::bf16, 1).exp_error * (1 + 0x1p-23))
      << error * 0x1p24 << " units of 2^-24";
}

std::vector<float> powers_of(const std::vector<float>& of) {
  const Guarded<float> from(of), to(of);
  powers_kernel<<<1, kThreads>>>(from.data(), to.data(), static_cast<int>(of.size()));
  check_cuda(cudaGetLastError(), "launch", "powers");
  wait_for_device(0);
  return to.values("powers");
}

TEST_F(Powers, of_limits_are_limits) {
  const float infinity = HUGE_VALF;
  const std::vector<float> got = powers_of({-infinity, infinity, -127, std::nanf("")});
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], infinity);
  EXPECT_EQ(got[2], 0) << "subnormal results are 0";
  EXPECT_TRUE(std::isnan(got[3]));
}

// No document says that the instruction is exact there, and nothing needs it: it is measured.
TEST_F(Powers, of_whole_numbers_are_near_and_it_is_told_how_many_are_exact) {
  std::vector<float> whole;
  for (int power = -126; power <= 127; ++power) whole.push_back(static_cast<float>(power));
  whole.push_back(1e-40f);  // subnormal: it counts as 0
  const std::vector<float> got = powers_of(whole);
  double worst = 0;
  int exact = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) / std::exp2(whole[i]) - 1);
    exact += error == 0;
    worst = std::isnan(error) ? error : std::max(worst, error);
  }
  RecordProperty("whole_numbers_with_exact_powers",
                 std::to_string(exact) + " of " + std::to_string(whole.size()));
  RecordProperty("their_worst_error_in_2_to_minus_24", std::to_string(worst * 0x1p24));
  EXPECT_LE(worst, kernel_profile(DType::bf16, 1).exp_error * (1 + 0x1p-23));
}

}  // namespace
}  // namespace ringlab::cuda
