// Cases with score modifiers: drawn for subjects that can, found wrong where one of them is
// ignored.
#include <gtest/gtest.h>

#include "property_tests/verify.h"
#include "reference/attention/exact.h"

namespace ringlab::verify {
namespace {

using Forget = void (*)(Modifiers&);

Tensor<double> rounded(Tensor<double> tensor, DType dtype) {
  for (double& x : tensor.values()) x = round_to(dtype, x);
  return tensor;
}

/// The ring of two loops as a subject, after `forget` has had its way with the modifiers.
Subject two_loops(Forget forget) {
  Subject subject{.name = "two_loops",
                  .title = "the ring of two loops",
                  .can = {},
                  .run =
                      [forget](AttentionInput input, const RunOptions& options) {
                        forget(input.problem.modifiers);
                        RunResult result;
                        result.output = ring_as_two_loops(input, options.ranks);
                        result.output.out =
                            rounded(std::move(result.output.out), input.problem.dtype);
                        return result;
                      },
                  .profile =
                      [](const Problem& problem, const RunOptions& options) {
                        NumericsProfile profile = carried_profile(DType::f64, options.ranks);
                        profile.out_dtype = problem.dtype;
                        return profile;
                      }};
  subject.can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  subject.can.modifiers = kAllModifiers;
  return subject;
}

LawVerdict judged(Forget forget) {
  return verify_law(two_loops(forget), find_law("equals_reference"), {.cases_per_law = 200});
}

TEST(ModifiedCases, are_drawn_for_a_subject_that_can_and_hold_for_a_correct_one) {
  LawVerdict verdict = judged([](Modifiers&) {});
  EXPECT_FALSE(verdict.failure) << verdict.failure->message << verdict.failure->token;
  for (const char* name : {"soft-capping", "ALiBi", "sinks", "dropout"}) {
    EXPECT_GT(verdict.classes[name], 10) << name;
  }
}

TEST(ModifiedCases, are_not_drawn_for_a_subject_that_cannot) {
  Subject subject = two_loops([](Modifiers&) {});
  subject.can.modifiers = {};
  LawVerdict verdict = verify_law(subject, find_law("equals_reference"), {});
  EXPECT_FALSE(verdict.failure);
  EXPECT_EQ(verdict.classes.count("sinks"), 0u);
}

TEST(ModifiedCases, shrink_to_the_one_modifier_that_is_ignored) {
  const auto softcap = judged([](Modifiers& m) { m.softcap = 0; });
  ASSERT_TRUE(softcap.failure);
  EXPECT_EQ(softcap.failure->shrunk.modifiers,
            (CaseModifiers{.softcap = softcap.failure->shrunk.modifiers.softcap}));
  const auto alibi = judged([](Modifiers& m) { m.alibi_slopes.clear(); });
  ASSERT_TRUE(alibi.failure);
  EXPECT_EQ(alibi.failure->shrunk.modifiers, (CaseModifiers{.alibi = true}));
  const auto sinks = judged([](Modifiers& m) { m.sinks.clear(); });
  ASSERT_TRUE(sinks.failure);
  EXPECT_EQ(sinks.failure->shrunk.modifiers, (CaseModifiers{.sinks = true}));
  const auto dropout = judged([](Modifiers& m) { m.dropout_seed ^= 1; });
  ASSERT_TRUE(dropout.failure);
  EXPECT_EQ(dropout.failure->shrunk.modifiers.softcap, 0);
  EXPECT_FALSE(dropout.failure->shrunk.modifiers.sinks);
  EXPECT_GT(dropout.failure->shrunk.modifiers.dropout_percent, 0);
}

}  // namespace
}  // namespace ringlab::verify
