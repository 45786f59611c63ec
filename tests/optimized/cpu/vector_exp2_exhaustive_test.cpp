// 2^x of every float at or below 0, against the C library's in double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/optimized/cpu/vector_exp2_exhaustive_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "optimized/cpu/vector_exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// out[i] = 2^x[i]; count is a multiple of 16.
void exp2_floats(const float* x, std::size_t count, float* out) {
  const hn::ScalableTag<float> d;
  const Exp2<decltype(d)> exp2(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(exp2(hn::LoadU(d, x + i)), d, out + i);
  }
}
void exp2_doubles(const double* x, std::size_t count, double* out) {
  const hn::ScalableTag<double> d;
  const Exp2<decltype(d)> exp2(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(exp2(hn::LoadU(d, x + i)), d, out + i);
  }
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

#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"

namespace ringlab::cpu {
HWY_EXPORT(exp2_floats);
HWY_EXPORT(exp2_doubles);
namespace {

constexpr std::uint32_t kMinusZero = 0x80000000u, kMinusInfinity = 0xff800000u;
constexpr std::uint32_t kBatch = 1 << 16;

class VectorExp2 : public OnVectors {};

/// Worst relative error over the floats with the bits begin … begin+kBatch-1; results of which the
/// exact one is below the normal range must be 0 or as near as that.
double worst_error(std::uint32_t begin) {
  std::vector<float> x(kBatch), y(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    x[i] = std::bit_cast<float>(begin + static_cast<std::uint32_t>(i));
  }
  HWY_DYNAMIC_DISPATCH(exp2_floats)(x.data(), kBatch, y.data());
  double worst = 0;
  for (std::size_t i = 0; i < kBatch; ++i) {
    const double exact = std::exp2(static_cast<double>(x[i]));
    if (exact < 0x1.0001p-126) {  // flushed or not
      if (!(y[i] >= 0 && y[i] <= 0x1.0002p-126)) return std::numeric_limits<double>::infinity();
    } else {
      worst = std::max(worst, std::abs(y[i] - exact) / exact);
      if (std::isnan(y[i])) return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

TEST_P(VectorExp2, of_every_float_at_or_below_0_or_a_sample_is_within_1_75_ulp) {
  std::vector<double> worst(2, 0);
  std::atomic<int> workers = 0;
  // The operations are the same on all vectors: all floats on the widest, a sample on the others.
  const std::int64_t step = available_vectors().front().starts_with(GetParam()) ? 1 : 17;
  const std::int64_t batches = (kMinusInfinity - kMinusZero) / kBatch / step;
  share_out(batches, 2, [&] {
    const auto mine = static_cast<std::size_t>(workers++);
    return [&, mine](std::int64_t batch) {
      const auto first = static_cast<std::uint32_t>(batch * step) * kBatch;
      worst[mine] = std::max(worst[mine], worst_error(kMinusZero + first));
    };
  });
  const double all = std::max(worst[0], worst[1]);
  RecordProperty("worst_relative_error_in_units_of_2_to_the_minus_23",
                 std::to_string(all * 0x1p23));
  EXPECT_LE(all, 0x1.cp-23);
}

TEST_P(VectorExp2, of_0_is_1_and_of_minus_infinity_0_and_nan_stays_nan) {
  std::vector<float> x(16), y(16);
  x[1] = -0.0f;
  x[2] = -std::numeric_limits<float>::infinity();
  x[3] = std::numeric_limits<float>::quiet_NaN();
  HWY_DYNAMIC_DISPATCH(exp2_floats)(x.data(), 16, y.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  std::vector<double> u(x.begin(), x.end()), w(16);
  HWY_DYNAMIC_DISPATCH(exp2_doubles)(u.data(), 16, w.data());
  EXPECT_EQ(w[0], 1);
  EXPECT_EQ(w[1], 1);
  EXPECT_EQ(w[2], 0);
  EXPECT_TRUE(std::isnan(w[3]));
}

TEST_P(VectorExp2, of_doubles_is_within_1_75_ulp) {
  std::mt19937_64 random(1);
  std::vector<double> x(1 << 20), y(x.size());
  std::uniform_real_distribution<double> wide(-1021, 0), narrow(-1, 0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 ? wide(random) : narrow(random);
  HWY_DYNAMIC_DISPATCH(exp2_doubles)(x.data(), x.size(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp2(static_cast<long double>(x[i]));
    ASSERT_LE(std::abs(y[i] - exact) / exact, 0x1.cp-52L) << "x = " << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(On, VectorExp2, every_kind_of_vectors(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
#endif
