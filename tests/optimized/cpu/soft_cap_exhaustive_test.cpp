// tanh of every float, as soft-capping uses it, against the C library's in double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/optimized/cpu/soft_cap_exhaustive_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "optimized/cpu/modifiers/soft_cap-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// With a cap of 1, in place; aligned, count a multiple of 16.
void cap_floats(float* x, std::int64_t count, float* slopes) {
  soft_cap<float>({1, 1}, count, x, slopes);
}
void cap_doubles(double* x, std::int64_t count, double* slopes) {
  soft_cap<double>({1, 1}, count, x, slopes);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/kernel_profile.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"

namespace ringlab::cpu {
HWY_EXPORT(cap_floats);
HWY_EXPORT(cap_doubles);
namespace {

constexpr std::int64_t kBatch = 1 << 16;

class SoftCapping : public OnVectors {};

/// Relative errors of tanh, and absolute errors of 1 - tanh².
struct Worst {
  double tanh = 0, slope = 0;
  void add(const Worst& other) {
    tanh = std::max(tanh, other.tanh);
    slope = std::max(slope, other.slope);
  }
};

/// Over the floats with the bits begin … begin+kBatch-1, and those times -1.
Worst worst_errors(std::uint32_t begin) {
  const AlignedArray<float> y = aligned_array<float>(2 * kBatch);
  const AlignedArray<float> slopes = aligned_array<float>(2 * kBatch);
  const auto x = [&](std::int64_t i) {
    return std::bit_cast<float>(begin + static_cast<std::uint32_t>(i));
  };
  for (std::int64_t i = 0; i < kBatch; ++i) {
    y.get()[i] = x(i);
    y.get()[kBatch + i] = -x(i);
  }
  HWY_DYNAMIC_DISPATCH(cap_floats)(y.get(), 2 * kBatch, slopes.get());
  Worst worst;
  for (std::int64_t i = 0; i < kBatch; ++i) {
    const double exact = std::tanh(static_cast<double>(x(i)));
    const double got = y.get()[i];
    // Half the least float is what any rounding below the normal range may cost.
    const double error = std::max(std::abs(got - exact) - 0x1p-149, 0.0);
    const bool odd = y.get()[kBatch + i] == -y.get()[i];
    const bool in_range = got >= 0 && got <= 1 && odd;
    worst.add({in_range ? (error > 0 ? error / exact : 0) : 1,
               std::abs(static_cast<double>(slopes.get()[i]) - (1 - got * got))});
  }
  return worst;
}

TEST_P(SoftCapping, of_every_float_or_a_sample_is_as_near_to_tanh_as_the_profile_says) {
  std::vector<Worst> worst(2);
  std::atomic<int> workers = 0;
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  // The operations are the same on all vectors: all floats on the widest, a sample on the others.
  const std::int64_t step = available_vectors().front().starts_with(GetParam()) ? 1 : 17;
  share_out(kInfinity / kBatch / step, 2, [&] {
    const auto mine = static_cast<std::size_t>(workers++);
    return [&, mine](std::int64_t batch) {
      worst[mine].add(worst_errors(static_cast<std::uint32_t>(batch * step * kBatch)));
    };
  });
  worst[0].add(worst[1]);
  RecordProperty("worst_relative_error_of_tanh_in_units_of_2_to_the_minus_23",
                 std::to_string(worst[0].tanh * 0x1p23));
  EXPECT_LE(worst[0].tanh, kernel_profile(DType::f32, 1).tanh_error);
  EXPECT_LE(worst[0].slope, 2 * 0x1p-24) << "two roundings where nothing is fused";
}

TEST_P(SoftCapping, of_doubles_is_as_near_to_tanh_as_the_profile_says) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kCount = 1 << 20;
  const AlignedArray<double> y = aligned_array<double>(kCount);
  const AlignedArray<double> slopes = aligned_array<double>(kCount);
  std::uniform_real_distribution<double> wide(-25, 25), narrow(-1, 1), exponent(-1030, 0);
  std::vector<double> x(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    x[static_cast<std::size_t>(i)] = i % 3 == 0   ? wide(random)
                                     : i % 3 == 1 ? narrow(random)
                                                  : std::exp2(exponent(random));
  }
  std::ranges::copy(x, y.get());
  HWY_DYNAMIC_DISPATCH(cap_doubles)(y.get(), kCount, slopes.get());
  long double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::tanh(static_cast<long double>(x[i]));
    const long double off = std::max(std::abs(y.get()[i] - exact) - 0x1p-1074L, 0.0L);
    if (off > 0) worst = std::max(worst, off / std::abs(exact));
    ASSERT_LE(std::abs(slopes.get()[i] - (1 - static_cast<long double>(y.get()[i]) * y.get()[i])),
              2 * 0x1p-53L);
  }
  RecordProperty("worst_relative_error_of_tanh_in_units_of_2_to_the_minus_52",
                 std::to_string(static_cast<double>(worst * 0x1p52L)));
  EXPECT_LE(worst, kernel_profile(DType::f64, 1).tanh_error);
}

template <class Real, class Cap>
void expect_ends(Cap cap) {
  const AlignedArray<Real> y = aligned_array<Real>(16), slopes = aligned_array<Real>(16);
  std::fill(y.get(), y.get() + 16, Real(0));
  y[1] = std::numeric_limits<Real>::infinity();
  y[2] = -y[1];
  y[3] = std::numeric_limits<Real>::max();
  y[4] = -y[3];
  y[5] = std::numeric_limits<Real>::quiet_NaN();
  cap(y.get(), slopes.get());
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(slopes[0], 1);
  for (const std::size_t i : {1, 3}) {
    EXPECT_EQ(y[i], 1);
    EXPECT_EQ(y[i + 1], -1);
    EXPECT_EQ(slopes[i], 0);
    EXPECT_EQ(slopes[i + 1], 0);
  }
  EXPECT_TRUE(std::isnan(y[5]));
}

TEST_P(SoftCapping, of_what_is_huge_or_infinite_is_the_cap_and_nan_stays_nan) {
  expect_ends<float>([](float* y, float* s) { HWY_DYNAMIC_DISPATCH(cap_floats)(y, 16, s); });
  expect_ends<double>([](double* y, double* s) { HWY_DYNAMIC_DISPATCH(cap_doubles)(y, 16, s); });
}

INSTANTIATE_TEST_SUITE_P(On, SoftCapping, every_kind_of_vectors(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
#endif
