// The bound that a subject must keep: correct kernels always do, planted mistakes do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "reference/attention/exact.h"
#include "tests/reference/attention/emulated_kernel.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab {
namespace {

using testing::KernelOptions;
using testing::Mistake;

struct SubjectStudy {
  std::int64_t cases = 0;
  std::int64_t failed = 0;
  std::int64_t elements = 0;
  std::int64_t unpromised = 0;  ///< elements whose bound is infinite
  std::vector<double> ratios;   ///< worst of each case
  std::string first_failure;

  void add(std::uint64_t seed, const Report& report, const ForwardTolerance& tolerance) {
    ++cases;
    if (!report.passed() && failed++ == 0) {
      first_failure = "seed " + std::to_string(seed) + ": " + report.summary();
    }
    ratios.push_back(report.worst_ratio());
    for (const double allowed : tolerance.out.values()) {
      ++elements;
      unpromised += std::isinf(allowed);
    }
  }
  void print(const char* name) {
    std::sort(ratios.begin(), ratios.end());
    std::printf(
        "  %-22s %6ld cases, %8ld outputs (%ld without a promise), %ld false alarms, "
        "worst error / bound %.3f, median of cases %.3f\n",
        name, static_cast<long>(cases), static_cast<long>(elements), static_cast<long>(unpromised),
        static_cast<long>(failed), ratios.back(), ratios[ratios.size() / 2]);
  }
};

void check(std::uint64_t seed, const testing::CaseLimits& limits, const KernelOptions& options,
           SubjectStudy& study) {
  const testing::RandomCase c = testing::random_case(seed, limits);
  const ExactForward exact = exact_forward(c.input());
  const ForwardTolerance tolerance =
      forward_tolerance(c.input(), exact, testing::emulated_profile(c.problem, options));
  study.add(seed,
            compare_forward(testing::run_emulated_kernel(c.input(), options), exact, tolerance),
            tolerance);
}

KernelOptions kernel_options_of(std::uint64_t seed) {
  KernelOptions options;
  options.tile = 1 + static_cast<std::int64_t>(seed % 7);
  options.powers_of_two = seed % 2 == 0;
  options.flush_to_zero = seed % 5 == 0;
  return options;
}

/// At most a share `most` of the outputs is without a promise.
void expect_no_false_alarm(SubjectStudy& study, const char* name, double most = 0.05) {
  study.print(name);
  EXPECT_EQ(study.failed, 0) << study.first_failure;
  EXPECT_GT(study.ratios.back(), 1e-2) << "a bound this wide finds nothing";
  EXPECT_LT(static_cast<double>(study.unpromised), most * static_cast<double>(study.elements));
}

TEST(SubjectBound, never_fails_a_correct_f32_kernel) {
  SubjectStudy study;
  for (std::uint64_t seed = 0; seed < 12000; ++seed) {
    check(seed, {.tokens = 24, .dim = 9, .dtype = DType::f32}, kernel_options_of(seed), study);
  }
  expect_no_false_alarm(study, "f32");
}

TEST(SubjectBound, never_fails_a_correct_kernel_that_rounds_the_factors_of_its_products) {
  SubjectStudy f32, bf16;
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    KernelOptions options = kernel_options_of(seed);
    options.round_factors = true;
    options.prescaled = seed % 3 == 0;
    check(seed, {.tokens = 24, .dim = 9, .dtype = DType::f32}, options, f32);
    options.cast_probabilities = seed % 2 == 0;
    if (seed % 4 < 2) check(seed, {.tokens = 24, .dim = 9, .dtype = DType::bf16}, options, bf16);
  }
  // Scores of a thousand and more are off by one and more.
  expect_no_false_alarm(f32, "f32, TF32 products", 0.25);
  expect_no_false_alarm(bf16, "bf16, TF32 products", 0.25);
}

TEST(SubjectBound, never_fails_a_correct_bf16_or_f16_kernel_whether_or_not_it_casts_probabilities) {
  SubjectStudy bf16, bf16_cast, f16_cast;
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    KernelOptions options = kernel_options_of(seed);
    check(seed, {.tokens = 24, .dim = 9, .dtype = DType::bf16}, options, bf16);
    options.cast_probabilities = true;
    check(seed, {.tokens = 24, .dim = 9, .dtype = DType::bf16}, options, bf16_cast);
    if (seed % 2) check(seed, {.tokens = 24, .dim = 9, .dtype = DType::f16}, options, f16_cast);
  }
  expect_no_false_alarm(bf16, "bf16");
  expect_no_false_alarm(bf16_cast, "bf16, P in bf16");
  expect_no_false_alarm(f16_cast, "f16, P in f16");
}

TEST(SubjectBound, never_fails_a_correct_f64_kernel) {
  SubjectStudy study;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    check(seed, {.tokens = 24, .dim = 9, .dtype = DType::f64}, kernel_options_of(seed), study);
  }
  expect_no_false_alarm(study, "f64");
}

TEST(SubjectBound, needs_its_terms_for_underflow) {
  // Values of a few least subnormals: products and weights underflow, and a bound that only knows
  // relative errors calls a correct kernel wrong.
  int wrong_without = 0, wrong_with = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const testing::RandomCase c =
        testing::random_case(seed, {.tokens = 24, .dim = 9, .dtype = DType::f32});
    const KernelOptions options = kernel_options_of(seed);
    const ExactForward exact = exact_forward(c.input());
    const AttentionOutput got = testing::run_emulated_kernel(c.input(), options);
    NumericsProfile profile = testing::emulated_profile(c.problem, options);
    wrong_with +=
        !compare_forward(got, exact, forward_tolerance(c.input(), exact, profile)).passed();
    profile.product_underflow = profile.exp_underflow = 0;
    wrong_without +=
        !compare_forward(got, exact, forward_tolerance(c.input(), exact, profile)).passed();
  }
  std::printf("  false alarms without the terms %d, with them %d\n", wrong_without, wrong_with);
  EXPECT_EQ(wrong_with, 0);
  EXPECT_GT(wrong_without, 0);
}

/// Share of random cases in which the mistake is noticed.
double caught(Mistake mistake, DType dtype, bool powers_of_two) {
  KernelOptions options{.tile = 4, .powers_of_two = powers_of_two, .mistake = mistake};
  SubjectStudy study;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    check(seed, {.tokens = 16, .dim = 3, .dtype = dtype}, options, study);
  }
  std::printf("  caught in %3ld of %ld cases\n", static_cast<long>(study.failed),
              static_cast<long>(study.cases));
  return static_cast<double>(study.failed) / static_cast<double>(study.cases);
}

TEST(SubjectBound, finds_a_scale_that_is_off_by_one_in_ten_thousand) {
  EXPECT_GT(caught(Mistake::scale_off_by_1e_4, DType::f32, false), 0.3);
}

TEST(SubjectBound, finds_log2e_cut_to_four_decimals) {
  EXPECT_GT(caught(Mistake::log2e_truncated, DType::f32, true), 0.1);
}

TEST(SubjectBound, finds_a_missing_rescale) {
  EXPECT_GT(caught(Mistake::no_rescale, DType::f32, false), 0.3);
  EXPECT_GT(caught(Mistake::no_rescale, DType::bf16, false), 0.3);
}

TEST(SubjectBound, finds_a_dropped_key) {
  EXPECT_GT(caught(Mistake::first_key_dropped, DType::f32, false), 0.5);
  EXPECT_GT(caught(Mistake::first_key_dropped, DType::bf16, false), 0.5);
}

TEST(SubjectBound, finds_a_row_sum_kept_in_bf16) {
  EXPECT_GT(caught(Mistake::row_sum_in_bf16, DType::f32, false), 0.3);
  EXPECT_GT(caught(Mistake::row_sum_in_bf16, DType::bf16, false), 0.3);
}

TEST(SubjectBound, finds_an_lse_without_the_maximum) {
  EXPECT_GT(caught(Mistake::maximum_forgotten_in_lse, DType::bf16, false), 0.5);
}

TEST(SubjectBound, rejects_nan_whatever_the_bound) {
  const testing::RandomCase c = testing::random_case(3, {.dtype = DType::f32});
  const ExactForward exact = exact_forward(c.input());
  AttentionOutput got{exact.out, exact.lse};
  ASSERT_FALSE(got.out.values().empty());
  got.out.values().front() = std::numeric_limits<double>::quiet_NaN();
  ForwardTolerance anything{Tensor<double>(exact.out.extents(), INFINITY),
                            Tensor<double>(exact.lse.extents(), INFINITY)};
  EXPECT_FALSE(compare_forward(got, exact, anything).passed());
}

}  // namespace
}  // namespace ringlab
