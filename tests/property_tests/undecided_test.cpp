// Elements beside a subject's bound end on the right side of it.
#include "property_tests/undecided.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/precise/double_double.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab::verify {
namespace {

/// A subject whose bound is `bound`, and whose elements are off by share · bound.
struct Comparison {
  testing::RandomCase c;
  ExactOptions options;
  ExactForward exact;
  ForwardTolerance tolerance;
  AttentionOutput got;

  Comparison(double bound, double share, const ExactOptions& wanted = {})
      : c(ordinary_case()), options(wanted), exact(exact_forward(c.input(), options)) {
    tolerance = {exact.out_error, exact.lse_error};
    got = {exact.out, exact.lse};
    for (Tensor<double>* tensor : {&tolerance.out, &tolerance.lse}) {
      for (double& allowed : tensor->values()) allowed += bound;
    }
    for (Tensor<double>* tensor : {&got.out, &got.lse}) {
      for (double& x : tensor->values()) x += share * bound;
    }
  }
  Settlement settle() const { return settle_undecided(c.input(), got, exact, tolerance, options); }
  std::int64_t elements() const { return got.out.size() + got.lse.size(); }

  static testing::RandomCase ordinary_case() {
    testing::RandomCase c;
    c.problem.shape = {.batch = 2,
                       .q_heads = 2,
                       .kv_heads = 1,
                       .q_tokens = 7,
                       .kv_tokens = 9,
                       .head_dim = 4,
                       .v_dim = 3};
    c.problem.dtype = DType::f64;
    c.problem.scale = 0.5;
    c.problem.mask = Mask({CausalMask{}}).bind(7, 9);
    std::mt19937_64 random(5);
    const auto fill = [&](const Extents& extents) {
      Tensor<double> tensor(extents);
      for (double& x : tensor.values()) x = std::normal_distribution<double>()(random);
      return tensor;
    };
    c.tensors = {fill(c.problem.shape.q()), fill(c.problem.shape.k()), fill(c.problem.shape.v())};
    return c;
  }
};

TEST(Undecided, elements_well_inside_or_outside_a_bound_are_not) {
  EXPECT_EQ(Comparison(1e-9, 0.5).settle().undecided, 0);
  EXPECT_EQ(Comparison(1e-9, 1.5).settle().undecided, 0);  // fails anyway
}

TEST(Undecided,
     bounds_as_small_as_the_certified_error_leave_all_undecided_and_double_double_decides) {
  // Off by more than the bound, and within bound and certified error together: passes today.
  const Comparison beyond(1e-17, 40);
  const Settlement found = beyond.settle();
  EXPECT_GT(found.undecided, beyond.elements() / 4);
  EXPECT_GT(found.wrong, 0);
  EXPECT_EQ(found.right + found.wrong + found.left, found.undecided);
  // The certified error is pessimistic: the reference itself is mostly within it by far.
  const Settlement inside = Comparison(1e-12, 0).settle();
  EXPECT_EQ(inside.undecided, 0);
  const Settlement beside = Comparison(2e-16, 0).settle();
  EXPECT_GT(beside.undecided, 0);
  EXPECT_GT(beside.right, beside.wrong);
}

// One key of 1e26: what the reference certifies is larger than any sum remembers the bound beside.
TEST(Undecided, a_bound_that_is_lost_in_the_certified_error_is_no_reason_to_call_anything_wrong) {
  Comparison comparison(1e-6, 0.1);
  for (Tensor<double>* tensor : {&comparison.exact.out_error, &comparison.exact.lse_error}) {
    for (double& error : tensor->values()) error = 1e11;
  }
  for (Tensor<double>* tensor : {&comparison.tolerance.out, &comparison.tolerance.lse}) {
    for (double& allowed : tensor->values()) allowed = 1e11 + 1e-6;
  }
  const Settlement found = comparison.settle();
  EXPECT_EQ(found.undecided, comparison.elements());
  EXPECT_EQ(found.left, found.undecided);
}

TEST(Undecided, agree_with_double_double_of_everything) {
  const double bound = 1e-16;
  const Comparison comparison(bound, 0.75);
  const DoubleDoubleForward truth = double_double_forward(comparison.c.input());
  std::int64_t wrong_in_all = 0;
  for (std::size_t i = 0; i < truth.out.values().size(); ++i) {
    const DoubleDouble& x = truth.out.values()[i];
    const double allowed = comparison.tolerance.out.values()[i];
    const double off = std::abs((comparison.got.out.values()[i] - x.high) - x.low);
    const double from_oracle =
        std::abs(comparison.got.out.values()[i] - comparison.exact.out.values()[i]);
    const double own = allowed - comparison.exact.out_error.values()[i];
    wrong_in_all += off > own * (1 + 0x1p-30) + x.error && from_oracle <= allowed;
  }
  for (std::size_t i = 0; i < truth.lse.values().size(); ++i) {
    const DoubleDouble& x = truth.lse.values()[i];
    const double allowed = comparison.tolerance.lse.values()[i];
    const double off = std::abs((comparison.got.lse.values()[i] - x.high) - x.low);
    const double from_oracle =
        std::abs(comparison.got.lse.values()[i] - comparison.exact.lse.values()[i]);
    const double own = allowed - comparison.exact.lse_error.values()[i];
    wrong_in_all += off > own * (1 + 0x1p-30) + x.error && from_oracle <= allowed;
  }
  EXPECT_GT(wrong_in_all, 0);
  EXPECT_EQ(comparison.settle().wrong, wrong_in_all);
}

TEST(Undecided, rows_that_were_chosen_are_found_again) {
  const ExactOptions some{.rows = {1, 4, 6}, .threads = 1};
  const Comparison chosen(1e-17, 40, some);
  const Comparison all(1e-17, 40);
  EXPECT_GT(chosen.settle().undecided, 0);
  EXPECT_LT(chosen.settle().undecided, all.settle().undecided);
}

}  // namespace
}  // namespace ringlab::verify
