// Signs of sums of exponentials: zeros that are zeros, and what only looks like one.
#include "reference/precise/exponential_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringlab {
namespace {

using precise::Dyadic;
using precise::ExponentialTerm;
using precise::sign_of_sum;

TEST(SignOfSum, is_zero_only_when_all_terms_cancel) {
  EXPECT_EQ(sign_of_sum({}).sign, 0);
  EXPECT_EQ(sign_of_sum({{Dyadic(0.0), Dyadic(3.0)}}).sign, 0);
  EXPECT_EQ(sign_of_sum({{Dyadic(2.5), Dyadic(3.0)}, {Dyadic(-2.5), Dyadic(3.0)}}).sign, 0);
  EXPECT_EQ(sign_of_sum({{Dyadic(1.0), Dyadic(0.5)},
                         {Dyadic(-3.0), Dyadic(1e300)},
                         {Dyadic(-1.0), Dyadic(mpz_class(1), -1)},  // 0.5 written differently
                         {Dyadic(3.0), Dyadic(1e300)}})
                .sign,
            0);
}

TEST(SignOfSum, needs_no_arithmetic_when_all_coefficients_agree) {
  const auto found = sign_of_sum({{Dyadic(-1.0), Dyadic(1e300)}, {Dyadic(-1e-300), Dyadic(-5.0)}});
  EXPECT_EQ(found.sign, -1);
  EXPECT_EQ(found.bits, 0);
}

TEST(SignOfSum, the_largest_exponent_wins_however_small_its_coefficient) {
  EXPECT_EQ(sign_of_sum({{Dyadic(-1e-300), Dyadic(1e300)}, {Dyadic(1e300), Dyadic(-1e300)}}).sign,
            -1);
  // So far apart that the smaller power is below every exponent of MPFR.
  const auto found = sign_of_sum({{Dyadic(-1.0), Dyadic(0.0)}, {Dyadic(1.0), Dyadic(-1e30)}});
  EXPECT_EQ(found.sign, -1);
  EXPECT_LE(found.bits, 128);
}

TEST(SignOfSum, sees_a_difference_of_2_to_the_minus_200_and_of_2_to_the_minus_1000) {
  for (const long depth : {200L, 1000L}) {
    // e^h - 1 - h = h²/2 + …: positive, and less so than h by `depth` bits.
    const Dyadic h(mpz_class(1), -depth);
    const auto found = sign_of_sum({{Dyadic(1.0), h}, {-(Dyadic(1.0) + h), Dyadic(0.0)}});
    EXPECT_EQ(found.sign, 1);
    EXPECT_GT(found.bits, 2 * depth);
    EXPECT_LE(found.bits, 8 * depth);
    EXPECT_EQ(sign_of_sum({{Dyadic(-1.0), h}, {Dyadic(1.0) + h, Dyadic(0.0)}}).sign, -1);
  }
}

TEST(SignOfSum, agrees_with_third_differences) {
  // e^{3h} - 3 e^{2h} + 3 e^h - 1 = (e^h - 1)³: the sign of h, through a cancellation of three
  // factors.
  for (const double h : {0x1p-60, -0x1p-60, 0x1.8p-333}) {
    const auto found = sign_of_sum({{Dyadic(1.0), Dyadic(3 * h)},
                                    {Dyadic(-3.0), Dyadic(2 * h)},
                                    {Dyadic(3.0), Dyadic(h)},
                                    {Dyadic(-1.0), Dyadic(0.0)}});
    EXPECT_EQ(found.sign, h > 0 ? 1 : -1) << h;
  }
}

TEST(DyadicTest, sums_and_products_of_doubles_are_exact) {
  Dyadic sum;
  sum.add_product(1e308, 1e308);
  sum.add_product(0x1p-1074, 0x1p-1074);
  sum.add_product(-1e308, 1e308);
  EXPECT_EQ(compare(sum, Dyadic(mpz_class(1), -2148)), 0);
  EXPECT_EQ(compare(Dyadic(0.1) + Dyadic(0.2), Dyadic(0.3)), 1);  // doubles that are not decimals
  EXPECT_EQ(compare(Dyadic(-0.0), Dyadic()), 0);
  EXPECT_EQ((Dyadic(3.0) - Dyadic(3.0)).sign(), 0);
}

}  // namespace
}  // namespace ringlab
