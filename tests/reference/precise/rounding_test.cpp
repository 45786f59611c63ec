// The grid of every format: neighbours, midpoints, and what lies a hair beside them.
#include "reference/precise/rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/special_doubles.h"

namespace ringlab {
namespace {

using precise::Dyadic;
using precise::Interval;

double nearest_of(DType dtype, const Dyadic& x) {
  const precise::PrecisionScope scope(4096);
  const Interval exact(x);
  return precise::nearest(dtype, exact.lower());
}

/// All finite numbers of a 16-bit format, ascending, zeros once.
template <class Small>
std::vector<double> all_numbers() {
  std::vector<double> numbers;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Small small;
    small.bits = static_cast<std::uint16_t>(bits);
    const double value = static_cast<double>(small);
    if (std::isfinite(value) && bits != 0x8000) numbers.push_back(value);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The two neighbours round to themselves, and so does what lies closer to one than to the other.
void expect_between(DType dtype, double lower, double upper) {
  const Dyadic hair(mpz_class(1), -3000);
  const Dyadic midpoint = precise::midpoint_above(dtype, lower);
  ASSERT_EQ(precise::next_up(dtype, lower), upper) << lower;
  ASSERT_EQ(nearest_of(dtype, midpoint - hair), lower) << lower;
  ASSERT_EQ(nearest_of(dtype, midpoint + hair), upper) << lower;
  ASSERT_EQ(nearest_of(dtype, midpoint), precise::even_one(dtype, lower, upper)) << lower;
}

template <class Small>
void check_every_number(DType dtype) {
  const std::vector<double> numbers = all_numbers<Small>();
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    expect_between(dtype, numbers[i], numbers[i + 1]);
    const double tie = (numbers[i] + numbers[i + 1]) / 2;  // exact: 16 bits and one more
    ASSERT_EQ(nearest_of(dtype, Dyadic(tie)), round_to(dtype, tie)) << tie;
  }
  expect_between(dtype, numbers.back(), kInfinity);
  expect_between(dtype, -kInfinity, numbers.front());
}

TEST(Rounding, knows_every_number_and_every_midpoint_of_f16) {
  check_every_number<Half>(DType::f16);
}
TEST(Rounding, knows_every_number_and_every_midpoint_of_bf16) {
  check_every_number<BFloat16>(DType::bf16);
}

TEST(Rounding, knows_the_borders_of_f32_and_f64) {
  const float most = std::numeric_limits<float>::max(), infinite = static_cast<float>(kInfinity);
  for (const float x : {0.0f, 0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 1.0f, 0x1.fffffep-1f, 3e38f,
                        -1.0f, -0x1p-126f, -0x1p-149f, most, -most}) {
    expect_between(DType::f32, x, std::nextafter(x, infinite));
  }
  for (const double x : {0.0, 0x1p-1074, 0x1p-1022, 0x1.ffffffffffffep-1023, 1.0,
                         0x1.fffffffffffffp-1, 1e308, -1.0, -0x1p-1022, -0x1p-1074,
                         std::numeric_limits<double>::max(), -std::numeric_limits<double>::max()}) {
    expect_between(DType::f64, x, std::nextafter(x, kInfinity));
  }
}

TEST(Rounding, of_doubles_is_what_the_conversions_make_of_them) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 40000; ++i) {
    double x = std::bit_cast<double>(random());
    if (!std::isfinite(x)) continue;
    int exponent = 0;  // every other number within the reach of the narrow formats
    if (i % 2 == 0)
      x = std::ldexp(std::frexp(x, &exponent), static_cast<int>(random() % 300) - 150);
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      ASSERT_EQ(nearest_of(dtype, Dyadic(x)), round_to(dtype, x)) << x;
    }
  }
}

TEST(Rounding, keeps_the_sign_of_what_it_rounds_to_zero) {
  const Dyadic tiny(mpz_class(-1), -5000);
  EXPECT_TRUE(std::signbit(nearest_of(DType::f64, tiny)));
  EXPECT_EQ(nearest_of(DType::f64, tiny), 0);
  EXPECT_FALSE(std::signbit(nearest_of(DType::f64, -tiny)));
}

TEST(Rounding, an_interval_over_a_midpoint_has_no_common_number) {
  const Interval over = Interval(1) + Interval::around_zero(0x1p-20);
  EXPECT_EQ(precise::common_nearest(DType::bf16, over), 1.0);
  EXPECT_EQ(precise::common_nearest(DType::f32, over), std::nullopt);
  EXPECT_EQ(precise::common_nearest(DType::f64, Interval(1)), 1.0);
}

}  // namespace
}  // namespace ringlab
