// What is not asked of kernels on devices, and what still is: weights of 1, bits beside NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

bool holds(const Subject& subject, const std::string& law) {
  const LawVerdict verdict =
      verify_law(subject, find_law(law), {.cases_per_law = 100, .shrink = false});
  return verdict.cases > 0 && !verdict.failure;
}

Subject with_narrow_dtypes(Subject subject) {
  subject.can.dtypes = {DType::f16, DType::bf16};
  return subject;
}

using Kind = std::function<bool(double)>;
bool is_not_finite(double x) { return !std::isfinite(x); }
bool is_1024(double x) { return x == 1024; }

bool has(const AttentionInput& input, const Kind& is_kind) {
  bool found = false;
  for (const auto& view : {input.q, input.k, input.v, input.dout.value_or(input.q)}) {
    for_each_index(view.extents, [&](auto b, auto h, auto t, auto c) {
      found = found || is_kind(view(b, h, t, c));
    });
  }
  return found;
}

/// The stage with gradients; where an input has such a number, its results come out times `factor`.
Subject changed_beside(const Kind& is_kind, double factor, bool says_so) {
  Subject subject = with_narrow_dtypes(find_subject("backward"));
  subject.can.set(Ability::same_bits_beside_nan, !says_so);
  return with_results(
      subject, [is_kind, factor](RunResult& result, const auto& input, const auto&) {
        if (!has(input, is_kind)) return;
        std::vector<Tensor<double>*> tensors = {&result.output.out, &result.output.lse};
        if (AttentionGradients* g = result.gradients ? &*result.gradients : nullptr) {
          tensors.insert(tensors.end(), {&g->dq, &g->dk, &g->dv});
        }
        for (Tensor<double>* x : tensors) *x = scaled(*x, factor);
      });
}

constexpr double kLowBits = 1 + 0x1p-26;
constexpr double kBeyondBounds = 1.25;

class BesideNan : public ::testing::TestWithParam<const char*> {};

TEST_P(BesideNan, other_low_bits_are_found_where_the_same_are_claimed) {
  EXPECT_FALSE(holds(changed_beside(is_not_finite, kLowBits, false), GetParam()));
}

TEST_P(BesideNan, other_low_bits_are_right_where_it_is_said) {
  EXPECT_TRUE(holds(changed_beside(is_not_finite, kLowBits, true), GetParam()));
}

TEST_P(BesideNan, errors_beyond_the_bounds_are_found_whatever_is_said) {
  EXPECT_FALSE(holds(changed_beside(is_not_finite, kBeyondBounds, true), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Law, BesideNan,
                         ::testing::Values("P29", "P33", "P34", "P48", "P49", "infinite_value"));

TEST(BesideNan, other_low_bits_beside_a_number_are_found_whatever_is_said) {
  for (const char* law : {"P29", "P33", "P34", "P48", "P49"}) {
    EXPECT_FALSE(holds(changed_beside(is_1024, kLowBits, true), law)) << law;
  }
}

/// Weights are rounded to the dtype, and all come out `steps` steps of it too large before P V.
Subject best_keys_off_1(double steps, bool says_so) {
  Subject subject = with_narrow_dtypes(naive_subject());
  subject.can.set(Ability::powers_next_to_0_are_1, !says_so);
  subject.profile = [](const Problem& problem, const RunOptions&) {
    NumericsProfile profile = carried_profile(problem.dtype, problem.shape.kv_tokens + 1);
    profile.u_probability = dtype_info(problem.dtype).unit_roundoff;
    return profile;
  };
  subject.run = [run = subject.run, steps](const AttentionInput& input, const RunOptions& options) {
    const double factor = 1 + steps * dtype_info(input.problem.dtype).unit_roundoff;
    const auto v = mapped(Tensor<double>(input.v.extents),
                          [&](double, auto... at) { return factor * input.v(at...); });
    AttentionInput weighed = input;
    weighed.v = v.view();
    return run(weighed, options);
  };
  return subject;
}

class BestKeysOff1 : public ::testing::TestWithParam<const char*> {};

TEST_P(BestKeysOff1, are_found_where_powers_are_claimed_to_be_1) {
  EXPECT_FALSE(holds(best_keys_off_1(0.9, false), GetParam()));
}

TEST_P(BestKeysOff1, are_right_within_the_bounds_of_powers_that_need_not_be_1) {
  EXPECT_TRUE(holds(best_keys_off_1(0.9, true), GetParam()));
}

TEST_P(BestKeysOff1, are_found_beyond_the_bounds) {
  EXPECT_FALSE(holds(best_keys_off_1(8, true), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Law, BestKeysOff1, ::testing::Values("S", "P10", "P31", "P33-narrow"));

}  // namespace
}  // namespace ringlab::verify
