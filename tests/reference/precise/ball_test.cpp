// Each operation on balls against intervals of 800 bits: the true result is inside.
#include "reference/precise/ball.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/reference/precise/enclosure.h"

namespace ringlab {
namespace {

using precise::Ball;
using precise::Interval;
using testing::Enclosed;
using testing::value_of;

/// Numbers of all sizes, near each other and far apart, in double-double.
class Operands {
 public:
  explicit Operands(std::uint64_t seed) : random_(seed) {}

  Ball next(int largest_exponent) {
    const double high = one(largest_exponent);
    const dd_real sum = dd_real::add(high, one(0) * std::abs(high) * 0x1p-53);
    return {sum, 0};
  }
  Ball near(const Ball& x) { return -(x + Ball(x.high() * one(-40))).exact_middle(); }
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

 private:
  double one(int largest_exponent) {
    const double size = std::uniform_real_distribution<double>(1, 2)(random_);
    const double value = std::ldexp(size, largest_exponent - pick(60));
    return pick(2) ? value : -value;
  }
  std::mt19937_64 random_;
};

Interval exactly(const Ball& x) { return value_of(x.high(), x.low()); }

class BallTest : public ::testing::Test {
 protected:
  precise::PrecisionScope scope_{800};
  Enclosed enclosed_;
  Operands operands_{1};
};

TEST_F(BallTest, sums_products_and_quotients_contain_the_true_value) {
  for (int i = 0; i < 20000; ++i) {
    const int size = 400 - 100 * operands_.pick(9);
    const Ball a = operands_.next(size);
    const Ball b = operands_.pick(3) ? operands_.next(size) : operands_.near(a);
    enclosed_.expect(a + b, exactly(a) + exactly(b), "a + b");
    enclosed_.expect(a - b, exactly(a) - exactly(b), "a - b");
    enclosed_.expect(a * b, exactly(a) * exactly(b), "a * b");
    enclosed_.expect(a * b.high(), exactly(a) * Interval(b.high()), "a * double");
    enclosed_.expect(a / b, exactly(a) / exactly(b), "a / b");
    enclosed_.expect(Ball::product(a.high(), b.high()), Interval(a.high()) * Interval(b.high()),
                     "double * double");
  }
  EXPECT_GT(enclosed_.worst(), 0.1);  // the bound is no more than generous
  EXPECT_EQ(enclosed_.bounded(), enclosed_.compared());
}

TEST_F(BallTest, products_near_the_smallest_numbers_contain_the_true_value) {
  for (int i = 0; i < 5000; ++i) {
    const Ball a = operands_.next(-480), b = operands_.next(-500);
    enclosed_.expect(a * b, exactly(a) * exactly(b), "a * b");
    enclosed_.expect(Ball::product(a.high(), b.high()), Interval(a.high()) * Interval(b.high()),
                     "double * double");
    enclosed_.expect(a * Ball(0x1p-1074), exactly(a) * Interval(0x1p-1074), "subnormal");
    enclosed_.expect((a * b) / b, exactly(a), "back again");
  }
}

TEST_F(BallTest, elementary_functions_contain_the_true_value_and_stay_sharp) {
  for (int i = 0; i < 3000; ++i) {
    const Ball x = operands_.next(operands_.pick(12) - 2);
    enclosed_.expect(exp(x), exp(exactly(x)), "exp");
    enclosed_.expect(tanh(x), tanh(exactly(x)), "tanh");
    enclosed_.expect(sech_squared(x), sech_squared(exactly(x)), "sech²");
    enclosed_.expect(expm1(x), exp(exactly(x)) - Interval(1), "expm1");
    if (x.high() > 0) enclosed_.expect(log(x), log(exactly(x)), "log");
    if (std::abs(x.high()) > 50) continue;
    const Ball e = exp(x), t = tanh(x);
    EXPECT_LT(e.radius(), 0x1p-94 * e.high()) << x.high();
    EXPECT_LT(t.radius(), 0x1p-92 * std::abs(t.high())) << x.high();
  }
}

TEST_F(BallTest, what_goes_in_wide_comes_out_wide) {
  for (int i = 0; i < 2000; ++i) {
    const Ball x = operands_.next(3).widened(std::ldexp(1.0, -1 - operands_.pick(80)));
    for (const double end : {-x.radius(), x.radius()}) {
      const Interval inside = exactly(x) + Interval(end);
      enclosed_.expect(exp(x), exp(inside), "exp");
      enclosed_.expect(expm1(x), exp(inside) - Interval(1), "expm1");
      enclosed_.expect(x * x, inside * inside, "square");
      enclosed_.expect(tanh(x), tanh(inside), "tanh");
      if (x.high() > x.radius()) enclosed_.expect(log(x), log(inside), "log");
      if (x.high() > x.radius()) enclosed_.expect(Ball(1) / x, Interval(1) / inside, "1 / x");
    }
  }
}

TEST_F(BallTest, extremes_are_enclosed_or_nothing_is_promised) {
  const auto infinite = [](const Ball& x) { return !std::isfinite(x.radius()); };
  EXPECT_TRUE(infinite(exp(Ball(1000))));
  EXPECT_TRUE(infinite(log(Ball(0))));
  EXPECT_TRUE(infinite(log(Ball(-1))));
  EXPECT_TRUE(infinite(Ball(1) / Ball(0)));
  EXPECT_TRUE(infinite(Ball(1e300) * Ball(1e300)));
  EXPECT_TRUE(infinite(exp(Ball(std::nan("")))));
  for (const double x : {-1e308, -700.0, -600.5, -599.0, 0x1p-1074, -0x1p-1074, 0x1p-500, 0.0}) {
    enclosed_.expect(exp(Ball(x)), exp(Interval(x)), "exp");
    enclosed_.expect(tanh(Ball(x)), tanh(Interval(x)), "tanh");
  }
  for (const double x : {0x1p-500, -0x1p-300, 0x1p-100}) {
    const Ball e = expm1(Ball(x));
    EXPECT_LT(e.radius(), 0x1p-90 * std::abs(x));
  }
  const Ball zero = Ball(0) * Ball(3) / Ball(7) + Ball(0);
  EXPECT_EQ(zero.radius(), 0);
}

}  // namespace
}  // namespace ringlab
