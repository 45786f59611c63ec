// Cases with score modifiers: drawn for subjects that can, found wrong where one of them is
// ignored.
#include <gtest/gtest.h>

#include "property_tests/subject_list.h"
#include "property_tests/verify.h"

namespace ringlab::verify {
namespace {

using Forget = void (*)(Modifiers&);

/// The reference as a subject, after `forget` has had its way with the modifiers.
Subject forgetful(Forget forget) {
  Subject subject = reference_subject();
  subject.run = [run = subject.run, forget](AttentionInput input, const RunOptions& options) {
    forget(input.problem.modifiers);
    return run(input, options);
  };
  return subject;
}

LawVerdict judged(Forget forget) {
  return verify_law(forgetful(forget), find_law("equals_reference"), {.cases_per_law = 200});
}

TEST(ModifiedCases, are_drawn_for_a_subject_that_can_and_hold_for_a_correct_one) {
  LawVerdict verdict = judged([](Modifiers&) {});
  EXPECT_FALSE(verdict.failure) << verdict.failure->message << verdict.failure->token;
  for (const char* name : {"soft-capping", "ALiBi", "sinks", "dropout"}) {
    EXPECT_GT(verdict.classes[name], 10) << name;
  }
}

TEST(ModifiedCases, are_not_drawn_for_a_subject_that_cannot) {
  Subject subject = forgetful([](Modifiers&) {});
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
