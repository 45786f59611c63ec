#include "property_tests/envelope/envelope.h"

#include <gmock/gmock.h>

#include <random>

#include "property_tests/case_runner.h"
#include "property_tests/coverage.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Value;

TEST(Envelope, has_the_least_and_the_greatest_of_what_reached_the_subject) {
  Recorder watched(naive_subject());
  for (const std::int64_t keys : {3, 17, 5}) {
    Case c;
    c.shape = {1, 4, 2, 2, keys, 3, 3};
    c.mask = keys == 17 ? "causal+window:2,0" : "full";
    run_trial(watched.subject(), make_trial(c));
  }
  const Envelope seen = watched.take();
  EXPECT_EQ(seen.forward.calls, 3);
  EXPECT_EQ(seen.forward.sizes.at("kv_tokens").least, 3);
  EXPECT_EQ(seen.forward.sizes.at("kv_tokens").most, 17);
  EXPECT_EQ(seen.forward.sizes.at("group").most, 2);
  EXPECT_TRUE(seen.forward.has("mask", "causal+window"));
  EXPECT_TRUE(seen.forward.has("strides of k", "dense"));
  EXPECT_EQ(seen.gradients.calls, 0);
  EXPECT_EQ(watched.take().forward.calls, 0) << "it was taken";
}

TEST(Envelope, names_how_the_elements_of_a_tensor_lie) {
  Recorder watched(naive_subject());
  Case c;
  c.shape = {1, 2, 2, 3, 3, 2, 2};
  const Trial trial = make_trial(c);
  const auto word = [&](Strides strides) {
    std::vector<double> memory(1000, 0.5);
    AttentionInput input = trial.input();
    input.k.data = memory.data() + 500;
    input.k.strides = strides;
    watched.subject().run(input, trial.options);
    return watched.take().forward.kinds.at("strides of k").begin()->first;
  };
  EXPECT_EQ(word({12, 6, 2, 1}), "dense");
  EXPECT_EQ(word({12, 2, 4, 1}), "another order");
  EXPECT_EQ(word({12, 20, 5, 1}), "with gaps");
  EXPECT_EQ(word({12, 0, 2, 1}), "repeated");
  EXPECT_EQ(word({12, 6, -2, 1}), "backwards");
}

TEST(Envelope, of_what_is_claimed_leaves_what_no_call_had) {
  Capabilities can;
  can.dtypes = {DType::f32, DType::bf16};
  can.max_head_dim = 64;
  Recorder watched(naive_subject());
  Case c;
  c.shape = {1, 1, 1, 2, 3, 5, 4};
  c.mask = "causal";
  run_trial(watched.subject(), make_trial(c));
  const Envelope seen = watched.take();
  const std::vector<std::string> missing = claimed_not_tried(can, seen);
  EXPECT_THAT(missing, Contains("dtype bf16"));
  EXPECT_THAT(missing, Contains("head_dim 6 … 64"));
  EXPECT_THAT(missing, Contains("mask window"));
  EXPECT_THAT(missing, Contains("strides of v"));
  EXPECT_THAT(missing, Contains("grouped heads"));
  EXPECT_THAT(missing, Not(Contains("mask causal")));
  EXPECT_THAT(missing, Not(Contains("lengths that differ")));
  EXPECT_THAT(missing, Not(Contains("gradients")));
  can.add({Ability::backward});
  EXPECT_THAT(claimed_not_tried(can, seen), Contains("gradients"));
}

TEST(Envelope, knows_threads_of_subjects_that_honour_them) {
  Subject subject = naive_subject();
  const auto most_threads = [&](int threads) {
    Recorder watched(subject);
    Case c;
    c.shape = {1, 1, 1, 2, 2, 1, 1};
    c.threads = threads;
    run_trial(watched.subject(), make_trial(c));
    const Envelope seen = watched.take();
    const bool missing =
        !Value(claimed_not_tried(subject.can, seen), Not(Contains("several threads")));
    EXPECT_EQ(missing, subject.can.has(Ability::threads) && threads == 1);
    return seen.forward.most("threads");
  };
  EXPECT_EQ(most_threads(4), 1);
  subject.can.add({Ability::threads});
  EXPECT_EQ(most_threads(1), 1);
  EXPECT_EQ(most_threads(4), 4);
}

TEST(Coverage, of_a_subject_that_refuses_all_but_two_keys_says_so) {
  Subject subject = naive_subject();
  subject.run = [run = subject.run](const AttentionInput& input, const RunOptions& options) {
    if (input.problem.shape.kv_tokens != 2) throw Refused("will not");
    return run(input, options);
  };
  SubjectVerdict verdict{.subject = "picky", .laws = {}};
  verdict.laws.push_back(verify_law(subject, find_law("equals_reference"), {}));
  ASSERT_FALSE(verdict.laws[0].failure);
  EXPECT_GT(verdict.laws[0].cases, 0);
  const Coverage coverage = coverage_of(subject, verdict, {});
  EXPECT_TRUE(coverage.refuses_most());
  EXPECT_EQ(coverage.tried.forward.sizes.at("kv_tokens").most, 2);
}

Subject wrong_in_one_of(int calls) {
  const auto random = std::make_shared<std::mt19937>(7);
  return with_results(naive_subject(), [=](RunResult& result, const auto&, const auto&) {
    if ((*random)() % static_cast<unsigned>(calls) != 0) return;
    for (double& value : result.output.lse.values()) value += 1;
  });
}

TEST(Verify, runs_a_case_that_does_not_always_fail_fifty_times_and_says_how_often) {
  const LawVerdict verdict =
      verify_law(wrong_in_one_of(4), find_law("equals_reference"), {.cases_per_law = 200});
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->repeats, 50);
  EXPECT_GT(verdict.failure->repeated, 0);
  EXPECT_LT(verdict.failure->repeated, 50);
  EXPECT_THAT(verdict.failure->doubt(), HasSubstr("of 50 more runs"));
  const LawVerdict sure =
      verify_law(naive_subject(Mistake::scale_forgotten), find_law("equals_reference"), {});
  ASSERT_TRUE(sure.failure);
  EXPECT_EQ(sure.failure->repeats, 3);
  EXPECT_EQ(sure.failure->doubt(), "");
}

/// Gives no answer in time at these calls, counted from 1; at all from `always_from` on.
Subject late_at(int call, int always_from) {
  Subject subject = naive_subject();
  const auto calls = std::make_shared<int>(0);
  subject.run = [=, run = subject.run](const AttentionInput& input, const RunOptions& options) {
    if (++*calls == call || *calls >= always_from) {
      throw SubjectLost(Ending::timed_out, {"it", "an answer", "it gave no answer", ""});
    }
    return run(input, options);
  };
  return subject;
}

TEST(Verify, calls_nobody_wrong_for_one_answer_that_came_too_late) {
  const Law& law = find_law("equals_reference");
  const LawVerdict once = verify_law(late_at(5, 1'000'000), law, {.cases_per_law = 20});
  EXPECT_FALSE(once.failure);
  EXPECT_THAT(once.late, HasSubstr("it gave no answer"));
  const LawVerdict always = verify_law(late_at(5, 5), law, {.cases_per_law = 20});
  ASSERT_TRUE(always.failure);
  EXPECT_EQ(always.failure->ending, Ending::timed_out);
  EXPECT_EQ(always.failure->doubt(), "");
  EXPECT_EQ(always.late, "");
}

TEST(Verify, makes_cases_of_many_keys_as_small_as_cases_of_few) {
  const LawVerdict verdict =
      verify_law(naive_subject(Mistake::last_key_dropped), find_law("many_keys"), {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_LE(verdict.failure->shrunk.shape.kv_tokens, 4) << verdict.failure->token;
}

TEST(Verify, does_not_call_another_run_of_the_subject_exact) {
  const LawVerdict verdict =
      verify_law(naive_subject(Mistake::last_key_dropped), find_law("P16"), {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_THAT(verdict.failure->message, HasSubstr("other run"));
  EXPECT_THAT(verdict.failure->message, Not(HasSubstr("exact")));
}

}  // namespace
}  // namespace ringlab::verify
