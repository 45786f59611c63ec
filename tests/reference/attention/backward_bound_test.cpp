// The bound on a subject's gradients: correct kernels always keep it, planted mistakes do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "reference/attention/exact.h"
#include "tests/reference/attention/emulated_backward.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab {
namespace {

using testing::BackwardMistake;
using testing::KernelOptions;

bool promises_nothing(const BackwardTolerance& allowed) {
  for (const Tensor<double>* tensor : {&allowed.dq, &allowed.dk, &allowed.dv}) {
    for (const double bound : tensor->values()) {
      if (std::isinf(bound)) return true;
    }
  }
  return false;
}

/// A random case.
testing::RandomCase small_case(std::uint64_t seed, DType dtype) {
  return testing::random_case(seed, {.tokens = 16, .dim = 7, .dtype = dtype});
}

/// Empty where a gradient may overflow the dtype: such a case is no test of a kernel.
std::optional<Report> check(const testing::RandomCase& c, const KernelOptions& options,
                            const KernelOptions& promised, BackwardMistake mistake) {
  const ExactBackward exact = exact_backward(c.input(), c.dout.view());
  const BackwardTolerance allowed = backward_tolerance(
      c.input(), c.dout.view(), exact, testing::emulated_profile(c.problem, promised));
  const testing::Gradients got = run_emulated_backward(c.input(), c.dout, options, mistake);
  if (promises_nothing(allowed)) return std::nullopt;
  return Report{{compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()),
                 compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()),
                 compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view())}};
}

std::optional<Report> check(std::uint64_t seed, DType dtype, const KernelOptions& options,
                            BackwardMistake mistake = BackwardMistake::none) {
  return check(small_case(seed, dtype), options, options, mistake);
}

/// The tensor with its numbers as whole multiples of the least subnormal.
void make_subnormal(Tensor<double>& tensor, DType dtype) {
  for (double& x : tensor.values()) x = std::round(4 * x) * dtype_info(dtype).min_subnormal;
}

/// Failures of 600 cases in which q, k, both or dO are subnormal and the others are not.
int failures_of_subnormal(const KernelOptions& options, const KernelOptions& promised) {
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    testing::RandomCase c = small_case(seed, DType::f32);
    for (double& x : c.dout.values()) x *= 64;
    for (double& x : c.tensors.v.values()) x *= 64;
    if (seed % 4 == 3) {
      make_subnormal(c.dout, DType::f32);
      for (double& x : c.tensors.q.values()) x *= 64;
    }
    if (seed % 4 < 2) make_subnormal(c.tensors.q, DType::f32);
    if (seed % 4 == 1 || seed % 4 == 2) make_subnormal(c.tensors.k, DType::f32);
    const std::optional<Report> report = check(c, options, promised, BackwardMistake::none);
    if (report && !report->passed() && failed++ == 0) {
      std::printf("  seed %d%s\n", static_cast<int>(seed), report->summary().c_str());
    }
  }
  return failed;
}

TEST(BackwardBound, never_fails_a_kernel_whose_factors_underflow_before_their_product) {
  EXPECT_EQ(failures_of_subnormal({}, {}), 0);
  EXPECT_EQ(failures_of_subnormal({.prescaled = true}, {.prescaled = true}), 0);
  EXPECT_EQ(failures_of_subnormal({.scaled_slopes = true}, {}), 0);
  EXPECT_EQ(failures_of_subnormal({.round_factors = true}, {.round_factors = true}), 0);
}

TEST(BackwardBound, fails_a_kernel_that_scales_q_and_k_first_and_does_not_say_so) {
  EXPECT_GT(failures_of_subnormal({.prescaled = true}, {}), 10);
}

struct KernelKind {
  DType dtype;
  bool cast = false, stores = false, round_factors = false;
  std::string words() const {
    std::string text(dtype_info(dtype).name);
    if (cast) text += ", P and dS cast";
    if (stores) text += ", partial sums stored";
    return round_factors ? text + ", TF32 products" : text;
  }
};

void expect_no_false_alarm(const KernelKind& kind, std::uint64_t cases) {
  std::array<double, 3> worst{};
  std::int64_t failed = 0, discarded = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const KernelOptions options{
        .tile = 1 + static_cast<std::int64_t>(seed % 7),
        .powers_of_two = seed % 2 == 0,
        .cast_probabilities = kind.cast,
        .round_factors = kind.round_factors,
        .flush_to_zero = seed % 5 == 0,
        .queries_per_store = kind.stores ? 1 + static_cast<std::int64_t>(seed % 3) : 0,
        .keys_per_store = kind.stores ? 1 + static_cast<std::int64_t>(seed % 5) : 0};
    const std::optional<Report> report = check(seed, kind.dtype, options);
    if (!report) {
      ++discarded;
      continue;
    }
    if (!report->passed() && failed++ == 0) ADD_FAILURE() << "seed " << seed << report->summary();
    for (std::size_t t = 0; t < 3; ++t) {
      worst[t] = std::max(worst[t], report->tensors[t].worst.ratio);
    }
  }
  std::printf(
      "  %-40s %5ld cases, %ld discarded, %ld false alarms, worst error / bound dq %.3f dk %.3f "
      "dv %.3f\n",
      kind.words().c_str(), static_cast<long>(cases), static_cast<long>(discarded),
      static_cast<long>(failed), worst[0], worst[1], worst[2]);
  EXPECT_EQ(failed, 0);
  // In TF32, scores of a thousand and more are off by one and more.
  EXPECT_LT(discarded * (kind.round_factors ? 2 : 50), static_cast<std::int64_t>(cases));
  for (const double ratio : worst) EXPECT_GT(ratio, 1e-2);
}

TEST(BackwardBound, never_fails_a_correct_kernel) {
  expect_no_false_alarm({.dtype = DType::f32}, 3000);
  expect_no_false_alarm({.dtype = DType::bf16}, 1500);
  expect_no_false_alarm({.dtype = DType::bf16, .cast = true}, 1500);
  expect_no_false_alarm({.dtype = DType::f16, .cast = true}, 1500);
  expect_no_false_alarm({.dtype = DType::f64}, 1000);
}

TEST(BackwardBound, never_fails_a_kernel_that_rounds_the_factors_of_its_products_and_says_so) {
  expect_no_false_alarm({.dtype = DType::f32, .round_factors = true}, 1500);
  expect_no_false_alarm({.dtype = DType::bf16, .cast = true, .round_factors = true}, 700);
  std::array<int, 3> failed{};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::optional<Report> report =
        check(small_case(seed, DType::f32), {.round_factors = true}, {}, BackwardMistake::none);
    if (!report) continue;
    for (std::size_t t = 0; t < failed.size(); ++t) failed[t] += !report->tensors[t].passed();
  }
  for (const int cases : failed) EXPECT_GT(cases, 30) << "with none of it declared";
}

TEST(BackwardBound, never_fails_a_kernel_that_says_that_it_stores_partial_gradients) {
  expect_no_false_alarm({.dtype = DType::f32, .cast = true, .stores = true}, 1500);
  expect_no_false_alarm({.dtype = DType::bf16, .cast = true, .stores = true}, 1500);
  expect_no_false_alarm({.dtype = DType::f16, .cast = true, .stores = true}, 1500);
  expect_no_false_alarm({.dtype = DType::f64, .cast = true, .stores = true}, 500);
}

TEST(BackwardBound, fails_a_kernel_that_stores_partial_gradients_and_does_not_say_so) {
  std::array<int, 3> failed{};
  constexpr int kCases = 300;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const std::optional<Report> report =
        check(small_case(seed, DType::bf16), {.queries_per_store = 1, .keys_per_store = 1}, {},
              BackwardMistake::none);
    if (!report) continue;
    for (std::size_t t = 0; t < failed.size(); ++t) failed[t] += !report->tensors[t].passed();
  }
  std::printf("  of %d cases: dq %d, dk %d, dv %d\n", kCases, failed[0], failed[1], failed[2]);
  for (const int cases : failed) EXPECT_GT(cases, kCases / 10);
}

TEST(BackwardBound, finds_planted_mistakes_in_kernels_that_store_partial_gradients) {
  const KernelOptions options{.queries_per_store = 4, .keys_per_store = 4};
  for (const BackwardMistake mistake :
       {BackwardMistake::scale_missing_in_dk, BackwardMistake::row_term_missing,
        BackwardMistake::lse_of_the_next_row,
        BackwardMistake::dv_from_probability_of_the_next_key}) {
    int caught = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const std::optional<Report> report = check(seed, DType::bf16, options, mistake);
      caught += report && !report->passed();
    }
    std::printf("  caught in %d of 200 cases\n", caught);
    EXPECT_GT(caught, 60) << static_cast<int>(mistake);
  }
}

TEST(BackwardBound, finds_planted_mistakes) {
  for (const BackwardMistake mistake :
       {BackwardMistake::scale_missing_in_dk, BackwardMistake::row_term_missing,
        BackwardMistake::lse_of_the_next_row,
        BackwardMistake::dv_from_probability_of_the_next_key}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      int caught = 0;
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const std::optional<Report> report = check(seed, dtype, {}, mistake);
        caught += report && !report->passed();
      }
      std::printf("  caught in %d of 200 cases\n", caught);
      EXPECT_GT(caught, 60) << static_cast<int>(mistake);
    }
  }
}

}  // namespace
}  // namespace ringlab
