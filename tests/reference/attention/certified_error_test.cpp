// The oracle against 113-bit arithmetic: its certified error is never exceeded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "property_tests/oracles/quad_attention.h"
#include "reference/attention/exact.h"
#include "tests/reference/attention/random_case.h"
#include "tests/reference/attention/random_modifiers.h"

namespace ringlab {
namespace {

using quad::Quad;

/// Largest |value - truth| / bound seen, and how much was compared.
struct Ratios {
  double worst = 0;
  double sum = 0;
  std::int64_t compared = 0;
  std::int64_t exceeded = 0;

  void add(double value, const Quad& truth, double bound) {
    const Quad error = abs(Quad(value) - truth);
    ++compared;
    if (!(error <= Quad(bound))) ++exceeded;
    if (error == 0) return;
    const double ratio = static_cast<double>(Quad(error / Quad(bound)));
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  void add(const Tensor<double>& values, const std::vector<Quad>& truths,
           const Tensor<double>& bounds) {
    ASSERT_EQ(values.values().size(), truths.size());
    for (std::size_t i = 0; i < truths.size(); ++i) {
      add(values.values()[i], truths[i], bounds.values()[i]);
    }
  }
  void print(const char* tensor) const {
    std::printf("  %-4s %8ld compared, worst error / certified %.3f, mean %.3f\n", tensor,
                static_cast<long>(compared), worst, sum / static_cast<double>(compared));
  }
};

/// Never exceeded, and not by being uselessly wide.
void expect_certified(const Ratios& ratios) {
  EXPECT_EQ(ratios.exceeded, 0);
  EXPECT_LT(ratios.worst, 1.0);
  EXPECT_GT(ratios.worst, 1e-3);
  EXPECT_GT(ratios.compared, 1000);
}

DType dtype_of_case(std::uint64_t seed) {
  constexpr DType kTypes[] = {DType::f64, DType::f64, DType::f32, DType::f16, DType::bf16};
  return kTypes[seed % 5];
}

using CaseFactory = testing::RandomCase (*)(std::uint64_t, const testing::CaseLimits&);

void check_forward(CaseFactory make_case, std::uint64_t cases) {
  Ratios out, lse;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const testing::RandomCase c = make_case(seed, {.dtype = dtype_of_case(seed)});
    const ExactForward exact = exact_forward(c.input());
    const quad::Forward<Quad> truth = quad::forward<Quad>(c.input());
    out.add(exact.out, truth.out, exact.out_error);
    for (std::size_t i = 0; i < truth.lse.size(); ++i) {
      if (truth.empty[i]) {
        ASSERT_EQ(exact.lse.values()[i], -std::numeric_limits<double>::infinity()) << seed;
        ASSERT_EQ(exact.lse_error.values()[i], 0) << seed;
      } else {
        lse.add(exact.lse.values()[i], truth.lse[i], exact.lse_error.values()[i]);
      }
    }
    ASSERT_EQ(out.exceeded + lse.exceeded, 0)
        << "case " << seed << ", modifiers " << modifiers_text(c.problem.modifiers);
  }
  out.print("o");
  lse.print("lse");
  expect_certified(out);
  expect_certified(lse);
}

void check_backward(CaseFactory make_case, std::uint64_t cases) {
  Ratios dq, dk, dv, dsinks;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const testing::RandomCase c = make_case(seed, {.tokens = 9, .dtype = dtype_of_case(seed)});
    const ExactBackward exact = exact_backward(c.input(), c.dout.view());
    const quad::Backward<Quad> truth = quad::backward<Quad>(c.input(), c.dout.view());
    dq.add(exact.dq, truth.dq, exact.dq_error);
    dk.add(exact.dk, truth.dk, exact.dk_error);
    dv.add(exact.dv, truth.dv, exact.dv_error);
    ASSERT_EQ(exact.dsinks.size(), truth.dsinks.size());
    for (std::size_t h = 0; h < truth.dsinks.size(); ++h) {
      dsinks.add(exact.dsinks[h], truth.dsinks[h], exact.dsinks_error[h]);
    }
    ASSERT_EQ(dq.exceeded + dk.exceeded + dv.exceeded + dsinks.exceeded, 0)
        << "case " << seed << ", modifiers " << modifiers_text(c.problem.modifiers);
  }
  dq.print("dq");
  dk.print("dk");
  dv.print("dv");
  for (const Ratios& ratios : {dq, dk, dv}) expect_certified(ratios);
  if (dsinks.compared == 0) return;
  dsinks.print("sink");
  expect_certified(dsinks);
}

TEST(CertifiedError, of_the_forward_pass_is_never_exceeded_in_ten_thousand_random_cases) {
  check_forward(testing::random_case, 10000);
}

TEST(CertifiedError, of_the_forward_pass_is_never_exceeded_with_modifiers) {
  check_forward(testing::modified_case, 5000);
}

TEST(CertifiedError, of_the_backward_pass_is_never_exceeded_in_two_thousand_random_cases) {
  check_backward(testing::random_case, 2000);
}

TEST(CertifiedError, of_the_backward_pass_is_never_exceeded_with_modifiers) {
  check_backward(testing::modified_case, 1500);
}

/// Scores around 2^53 and more, so that they are known to a unit or two, or not at all.
testing::RandomCase huge_case(std::uint64_t seed) {
  testing::RandomCase c = testing::random_case(seed, {.tokens = 9, .dtype = DType::f64});
  for (double& q : c.tensors.q.values()) q = std::ldexp(q, 44 + static_cast<int>(seed % 20));
  return c;
}

TEST(CertifiedError, of_the_backward_pass_is_never_exceeded_where_row_sums_are_not_known) {
  Ratios gradients;
  int unknown = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const testing::RandomCase c = huge_case(seed);
    const ExactBackward exact = exact_backward(c.input(), c.dout.view());
    const quad::Backward<Quad> truth = quad::backward<Quad>(c.input(), c.dout.view());
    gradients.add(exact.dq, truth.dq, exact.dq_error);
    gradients.add(exact.dk, truth.dk, exact.dk_error);
    gradients.add(exact.dv, truth.dv, exact.dv_error);
    ASSERT_EQ(gradients.exceeded, 0) << "case " << seed;
    for (const double error : exact.dv_error.values()) unknown += std::isinf(error);
  }
  EXPECT_GT(unknown, 100);
  expect_certified(gradients);
}

TEST(CertifiedError, is_small_beside_what_fp32_can_resolve) {
  // What is certified would be worthless if it were wide: on ordinary inputs a few fp64 roundings.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 40, .dim = 9});
    double largest_v = 0;
    for (const double v : c.tensors.v.values()) largest_v = std::max(largest_v, std::abs(v));
    double largest_score = 0;
    const ExactForward exact = exact_forward(c.input());
    for (const double lse : exact.lse.values()) {
      if (std::isfinite(lse)) largest_score = std::max(largest_score, std::abs(lse));
    }
    for (const double error : exact.out_error.values()) {
      EXPECT_LE(error, 0x1p-53 * (64 + 16 * largest_score) * 4 * largest_v + 0x1p-1060) << seed;
    }
  }
}

}  // namespace
}  // namespace ringlab
