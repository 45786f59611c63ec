#include "reference/core/numerics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/special_doubles.h"

namespace ringlab {
namespace {

constexpr DType kAllTypes[] = {DType::f64,  DType::f32,      DType::f16,
                               DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2};

TEST(GammaBound, is_n_u_over_one_minus_n_u_and_infinite_from_one_on) {
  EXPECT_EQ(gamma_bound(0, 0x1p-24), 0);
  EXPECT_EQ(gamma_bound(100, 0), 0);
  EXPECT_NEAR(gamma_bound(4, 0.125), 1.0, 1e-12);
  EXPECT_GE(gamma_bound(4, 0.125), 1.0);
  EXPECT_EQ(gamma_bound(8, 0.125), kInfinity);
  EXPECT_EQ(gamma_bound(kNaN, 0.125), kInfinity);
  EXPECT_EQ(gamma_bound(kInfinity, 0x1p-24), kInfinity);
}

TEST(HalfUlp, is_half_the_gap_to_the_next_value_above_a_power_of_two) {
  EXPECT_EQ(half_ulp(DType::f32, 1.0), 0x1p-24);
  EXPECT_EQ(half_ulp(DType::f32, -3.0), 0x1p-23);
  EXPECT_EQ(half_ulp(DType::bf16, 1.99), 0x1p-8);
  EXPECT_EQ(half_ulp(DType::f16, 65504.0), 16.0);
  EXPECT_EQ(half_ulp(DType::f64, 1.0), 0x1p-53);
}

TEST(HalfUlp, never_falls_below_half_the_least_subnormal) {
  for (const DType dtype : kAllTypes) {
    const double least = dtype_info(dtype).min_subnormal;
    const double floor = dtype == DType::f64 ? least : least / 2;
    for (const double x : {0.0, least, 2 * least, dtype_info(dtype).min_normal}) {
      EXPECT_EQ(half_ulp(dtype, x), floor) << dtype_info(dtype).name << " at " << x;
    }
  }
}

TEST(HalfUlp, covers_the_rounding_of_every_value_up_to_the_magnitude) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> mantissa(1, 2), share(0, 1);
  for (const DType dtype : kAllTypes) {
    const DTypeInfo& info = dtype_info(dtype);
    const int low = std::ilogb(info.min_subnormal) - 2;
    const int high = std::ilogb(info.max_finite);
    for (int i = 0; i < 20000; ++i) {
      const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
      const double magnitude = std::ldexp(mantissa(random), exponent);
      const double bound = half_ulp(dtype, magnitude);
      if (std::isinf(bound)) continue;
      for (const double x : {magnitude, magnitude * share(random)}) {
        EXPECT_LE(std::abs(round_to(dtype, x) - x), bound) << info.name << " " << x;
      }
    }
  }
}

TEST(HalfUlp, is_infinite_exactly_where_rounding_may_overflow) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::fp8_e5m2}) {
    const double largest = dtype_info(dtype).max_finite;
    const double half = half_ulp(dtype, largest);
    EXPECT_LT(half, kInfinity);
    EXPECT_TRUE(std::isfinite(round_to(dtype, std::nextafter(largest + half, 0.0))));
    EXPECT_TRUE(std::isinf(round_to(dtype, largest + half)));
    EXPECT_LT(half_ulp(dtype, std::nextafter(largest + half, 0.0)), kInfinity);
    EXPECT_EQ(half_ulp(dtype, largest + half), kInfinity);
  }
  EXPECT_EQ(half_ulp(DType::fp8_e4m3, 465), kInfinity);
  EXPECT_EQ(half_ulp(DType::f64, kInfinity), kInfinity);
  EXPECT_EQ(half_ulp(DType::f32, kNaN), kInfinity);
}

TEST(CarriedProfile, computes_in_f32_except_for_f64) {
  const NumericsProfile bf16 = carried_profile(DType::bf16, 5);
  EXPECT_EQ(bf16.out_dtype, DType::bf16);
  EXPECT_EQ(bf16.u_accumulate, 0x1p-24);
  EXPECT_EQ(bf16.u_probability, 0);
  EXPECT_EQ(bf16.max_rescales, 5);
  const NumericsProfile f64 = carried_profile(DType::f64, 1);
  EXPECT_EQ(f64.u_accumulate, 0x1p-53);
  EXPECT_EQ(f64.u_work, 0x1p-53);
  EXPECT_EQ(f64.u_lse, 0x1p-53);
}

TEST(ScoreError, grows_with_every_term_and_is_infinite_where_the_product_may_overflow) {
  const NumericsProfile profile = carried_profile(DType::f32, 2);
  const ScoreTerms base{.head_dim = 8,
                        .absolute_products = 3,
                        .distance_from_max = 1,
                        .largest_score = 2,
                        .largest_products = 3};
  const double least = score_error(profile, base);
  EXPECT_GT(least, 0);
  for (double ScoreTerms::*term : {&ScoreTerms::absolute_products, &ScoreTerms::distance_from_max,
                                   &ScoreTerms::largest_score}) {
    ScoreTerms more = base;
    more.*term *= 10;
    EXPECT_GT(score_error(profile, more), least);
  }
  NumericsProfile prescaled = profile;
  prescaled.u_query = 0x1p-8;
  EXPECT_GT(score_error(prescaled, base), 3 * 0x1p-8);
  ScoreTerms huge = base;
  huge.absolute_products = 2e38;
  EXPECT_EQ(score_error(profile, huge), kInfinity);
  huge.absolute_products = kNaN;
  EXPECT_EQ(score_error(profile, huge), kInfinity);
}

TEST(WeightError, is_right_for_small_errors_large_errors_and_weights_that_underflow) {
  EXPECT_NEAR(weight_error(0, 1e-10), 1e-10, 1e-19);
  EXPECT_NEAR(weight_error(-1, 0.5), std::exp(-0.5) - std::exp(-1), 1e-12);
  EXPECT_GE(weight_error(-1, 3), std::exp(2) - std::exp(-1));
  EXPECT_NEAR(weight_error(-1000, 999), std::exp(-1), 1e-12);
  EXPECT_EQ(weight_error(-1e9, 10), 0);
  EXPECT_EQ(weight_error(-1e9, kInfinity), kInfinity);
  EXPECT_EQ(weight_error(0, kNaN), kInfinity);
}

OutputTerms ordinary_terms() {
  return {.keys = 10,
          .weighted_spread = 1e-6,
          .weighted_rho = 1e-6,
          .weighted_magnitude = 1,
          .magnitude_sum = 10,
          .row_sum = 3,
          .out = 0.5};
}

TEST(OutputBound, is_at_least_each_of_its_parts) {
  const NumericsProfile profile = carried_profile(DType::bf16, 3);
  EXPECT_GE(output_bound(profile, ordinary_terms()), half_ulp(DType::bf16, 0.5) + 1e-6);
  NumericsProfile cast = profile;
  cast.u_probability = 0x1p-8;
  EXPECT_GE(output_bound(cast, ordinary_terms()), output_bound(profile, ordinary_terms()) + 0x1p-8);
  cast.u_row_sum = 0x1p-8;
  EXPECT_GE(output_bound(cast, ordinary_terms()),
            output_bound(profile, ordinary_terms()) + 0x1p-8 * 1.4);
  NumericsProfile partial = profile;
  partial.u_partial = 0x1p-8;
  EXPECT_GE(output_bound(partial, ordinary_terms()),
            output_bound(profile, ordinary_terms()) + 3 * 0x1p-8);
}

TEST(OutputBound, promises_nothing_where_nothing_can_be_promised) {
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  for (const double rho : {1.0, 5.0, kInfinity, kNaN}) {
    OutputTerms terms = ordinary_terms();
    terms.weighted_rho = rho;
    EXPECT_EQ(output_bound(profile, terms), kInfinity) << rho;
    EXPECT_EQ(lse_bound(profile, {.keys = 3, .weighted_rho = rho}), kInfinity) << rho;
  }
  for (double OutputTerms::*term : {&OutputTerms::weighted_spread, &OutputTerms::weighted_magnitude,
                                    &OutputTerms::magnitude_sum, &OutputTerms::out}) {
    OutputTerms terms = ordinary_terms();
    terms.*term = kNaN;
    EXPECT_EQ(output_bound(profile, terms), kInfinity);
  }
  OutputTerms overflowing = ordinary_terms();
  overflowing.weighted_magnitude = 2e38;  // times the row sum of 3: beyond f32
  EXPECT_EQ(output_bound(profile, overflowing), kInfinity);
  NumericsProfile coarse = profile;
  coarse.u_accumulate = 0.25;
  EXPECT_EQ(output_bound(coarse, ordinary_terms()), kInfinity);
}

TEST(OutputBound, of_an_empty_row_is_zero) {
  EXPECT_EQ(output_bound(carried_profile(DType::f32, 1), {}), 0);
  EXPECT_EQ(lse_bound(carried_profile(DType::f32, 1), {}), 0);
}

TEST(OutputBound, stays_tight_for_ordinary_values_whatever_underflow_costs) {
  // The terms for underflow may not be felt where values are of order one.
  NumericsProfile without = carried_profile(DType::f32, 3);
  const double with_underflow = output_bound(without, ordinary_terms());
  without.product_underflow = without.exp_underflow = 0;
  EXPECT_NEAR(output_bound(without, ordinary_terms()) / with_underflow, 1.0, 1e-12);
  // And for subnormal values it is a few spacings per key, not a normal number.
  OutputTerms tiny = ordinary_terms();
  for (double OutputTerms::*term : {&OutputTerms::weighted_spread, &OutputTerms::weighted_magnitude,
                                    &OutputTerms::magnitude_sum, &OutputTerms::out}) {
    tiny.*term *= 0x1p-135;
  }
  EXPECT_LT(output_bound(carried_profile(DType::f32, 3), tiny), 20 * 0x1p-149);
  EXPECT_GT(output_bound(carried_profile(DType::f32, 3), tiny), 10 * 0x1p-149 / 3);
}

TEST(LseBound, follows_the_size_of_the_row_maximum) {
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  const double near = lse_bound(profile, {.keys = 4, .weighted_rho = 1e-6});
  const double far =
      lse_bound(profile, {.keys = 4, .weighted_rho = 1e-6, .row_max = 1e4, .lse = 1e4});
  EXPECT_GE(near, 1e-6);
  EXPECT_GE(far, near + 1e4 * 0x1p-24);
  NumericsProfile stored = profile;
  stored.u_lse = 0x1p-8;
  EXPECT_GE(lse_bound(stored, {.keys = 4, .lse = 10}), 10 * 0x1p-8);
}

TEST(MergeError, is_zero_for_a_carried_triple_and_grows_with_the_merges_and_the_lse) {
  NumericsProfile profile = carried_profile(DType::f32, 4);
  EXPECT_EQ(merge_error(profile, 100, 10), 0);
  profile.lse_merges = 1;
  const double once = merge_error(profile, 100, 10);
  EXPECT_GT(once, 100 * 0x1p-24);
  profile.lse_merges = 8;
  EXPECT_GE(merge_error(profile, 100, 10), 8 * once * (1 - 1e-9));
  EXPECT_GT(merge_error(profile, 1000, 10), 5 * merge_error(profile, 100, 10));
}

TEST(GradientBound, is_zero_for_no_terms_and_infinite_for_an_overflow) {
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  EXPECT_EQ(gradient_bound(profile, {}), 0);
  EXPECT_EQ(gradient_bound(profile, {.terms = 1, .magnitude = 1e39}), kInfinity);
  EXPECT_EQ(gradient_bound(profile, {.terms = 1, .propagated = kNaN}), kInfinity);
  EXPECT_EQ(
      gradient_bound(carried_profile(DType::f16, 1), {.terms = 1, .magnitude = 7e4, .value = 7e4}),
      kInfinity);
  const double bound = gradient_bound(
      profile, {.terms = 5, .propagated = 1e-3, .magnitude = 2, .scale = 0.5, .value = 1});
  EXPECT_GE(bound, 0.5e-3 + half_ulp(DType::f32, 1));
  EXPECT_LT(bound, 0.6e-3);
}

TEST(GradientBound, covers_partial_sums_that_are_stored_in_a_small_type) {
  // 1 + 2^-9 is stored as 1, and then -1 arrives: all of the sum is lost.
  const NumericsProfile profile = carried_profile(DType::bf16, 1);
  GradientTerms terms{.terms = 3, .magnitude = 2 + 0x1p-9, .value = 0x1p-9};
  EXPECT_LT(gradient_bound(profile, terms), 0x1p-9);
  terms.stores = 1;
  EXPECT_GE(gradient_bound(profile, terms), 0x1p-9);
  // Roundings that are proportional to the sum follow its scale.
  const double whole = gradient_bound(profile, terms);
  terms.scale = 0.25;
  terms.value /= 4;
  EXPECT_NEAR(gradient_bound(profile, terms), whole / 4, whole * 1e-9);
}

TEST(GradientBound, counts_stores_that_change_something) {
  const NumericsProfile profile = carried_profile(DType::bf16, 1);
  const auto bound = [&](std::int64_t terms, std::int64_t stores) {
    return gradient_bound(profile,
                          {.terms = terms, .magnitude = 1, .value = 0x1p-9, .stores = stores});
  };
  EXPECT_EQ(bound(1, 5), bound(1, 0));
  EXPECT_EQ(bound(3, 5), bound(3, 2));
  EXPECT_GT(bound(6, 5), bound(6, 2));
  EXPECT_EQ(bound(1000, 256), kInfinity);  // a relative error of 100 %
}

TEST(GradientBound, promises_nothing_where_a_partial_sum_may_overflow_its_type) {
  const NumericsProfile profile = carried_profile(DType::f16, 1);
  GradientTerms terms{.terms = 4, .magnitude = 6e4, .value = 1};
  EXPECT_LT(gradient_bound(profile, terms), kInfinity);
  terms.stores = 2;
  EXPECT_LT(gradient_bound(profile, terms), kInfinity);
  terms.magnitude = 7e4;
  EXPECT_EQ(gradient_bound(profile, terms), kInfinity);
  terms.scale = 1e-3;  // it may be scaled only afterwards
  EXPECT_EQ(gradient_bound(profile, terms), kInfinity);
  terms.stores = 0;
  EXPECT_LT(gradient_bound(profile, terms), kInfinity);
}

TEST(GradientBound, covers_partial_sums_below_the_normal_range) {
  const NumericsProfile profile = carried_profile(DType::f16, 1);
  const double least = dtype_info(DType::f16).min_subnormal;
  GradientTerms terms{.terms = 3, .magnitude = least, .value = least};
  const double whole = gradient_bound(profile, terms);
  terms.stores = 2;
  EXPECT_GE(gradient_bound(profile, terms), whole + 2 * (least / 2));
  terms.terms = 16;
  terms.heads = 8;  // each has a sum of its own, which loses as much
  EXPECT_GE(gradient_bound(profile, terms), whole + 16 * (least / 2));
  terms.terms = 5;
  EXPECT_LT(gradient_bound(profile, terms), whole + 6 * (least / 2)) << "no more than terms";
}

TEST(GradientStores, are_once_in_so_many_tokens_of_each_head_but_for_the_last) {
  EXPECT_EQ(stores_before_the_last(100, 0, 4), 0);
  EXPECT_EQ(stores_before_the_last(0, 32, 4), 0);
  EXPECT_EQ(stores_before_the_last(32, 32, 1), 0);
  EXPECT_EQ(stores_before_the_last(33, 32, 1), 1);
  EXPECT_EQ(stores_before_the_last(33, 32, 4), 7);
}

TEST(ProbabilityError, contains_the_error_of_the_saved_lse) {
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  ProbabilityTerms terms{.score = {.head_dim = 4, .absolute_products = 1}, .lse = 2};
  const double base = probability_error(profile, terms);
  terms.lse_error = 1e-3;
  EXPECT_GE(probability_error(profile, terms), base + 1e-3);
}

}  // namespace
}  // namespace ringlab
