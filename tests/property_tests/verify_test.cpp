#include "property_tests/verify.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "property_tests/laws/trial.h"
#include "property_tests/rounds.h"
#include "reference/core/error.h"
#include "reference/core/machine/machine_error.h"
#include "tests/expect_laws.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

Law failing_law(std::function<LawResult(const Subject&, const Case&)> check) {
  return {.id = "T",
          .name = "a_law_for_the_test",
          .statement = "",
          .exact = false,
          .shape_case = {},
          .not_applicable = {},
          .check = std::move(check)};
}

TEST(Verify, passes_a_correct_subject_on_every_law) {
  const SubjectVerdict verdict = expect_laws_kept(naive_subject(), {}, 30);
  EXPECT_TRUE(verdict.passed());
  EXPECT_EQ(verdict.laws.size(), all_laws().size());
  EXPECT_EQ(verdict.laws_passed() + verdict.laws_skipped(), static_cast<int>(all_laws().size()));
}

TEST(Verify, breaks_no_law_of_a_right_subject_however_little_it_promises) {
  using Weaken = void (*)(NumericsProfile&);
  const Weaken weaker[] = {
      [](NumericsProfile& p) { p.u_accumulate = 0.05; },
      [](NumericsProfile& p) { p.u_accumulate = p.u_work = p.exp_error = 0.5; },
      [](NumericsProfile& p) { p.u_probability = p.u_row_sum = p.p_underflow = 0.9; },
      [](NumericsProfile& p) { p.u_partial = p.u_lse = p.u_query = 0.9; },
      [](NumericsProfile& p) { p.exp_underflow = p.product_underflow = 0.9; }};
  for (const Weaken weaken : weaker) {
    expect_laws_kept(with_profile(find_subject("optimized"), weaken),
                     {.cases_per_law = 4, .planned_apart = 4, .shrink = false}, 30);
  }
}

/// Right until its machine fails, at the run with this number.
Subject subject_on_a_failing_machine(int last_run) {
  Subject subject = naive_subject();
  subject.run = [run = subject.run, left = std::make_shared<std::atomic<int>>(last_run)](
                    const AttentionInput& input, const RunOptions& options) {
    if (--*left <= 0) throw MachineError({.where = "device 0", .actual = "out of memory"});
    return run(input, options);
  };
  return subject;
}

TEST(Verify, gives_no_verdict_where_the_machine_failed_and_passes_its_error_on) {
  for (const int run : {1, 2, 50}) {
    EXPECT_THROW(verify_subject(subject_on_a_failing_machine(run), {}), MachineError) << run;
    RoundsProgress progress;
    EXPECT_THROW(
        verify_in_rounds({subject_on_a_failing_machine(run), naive_subject()}, {}, progress),
        MachineError)
        << run;
  }
}

TEST(Verify, gives_no_verdict_on_an_input_where_the_machine_failed) {
  const Trial trial = make_trial(Case{});
  EXPECT_THROW(verify_input(subject_on_a_failing_machine(1), trial.input(), trial.options, {}),
               MachineError);
}

TEST(Verify, of_gradients_in_any_order_asks_for_them_and_leaves_out_laws_about_their_bits) {
  Subject subject = naive_subject();
  subject.can.add({Ability::backward});
  int in_any_order = 0;
  subject.run = [&, run = subject.run](const AttentionInput& input, const RunOptions& options) {
    in_any_order += options.deterministic ? 0 : 1;
    return run(input, options);
  };
  const Trial trial = make_trial(Case{});
  const Subject free = with_gradients_in_any_order(subject);
  free.run(trial.input(), trial.options);
  EXPECT_EQ(in_any_order, 1);
  int left_out = 0;
  for (const Law& law : all_laws()) {
    const std::string why = why_not_applicable(law, free);
    if (law.exact && !law.or_within_bounds && law.topic == "gradients") {
      EXPECT_EQ(why, "the bits of its gradients differ from run to run") << law.id;
      ++left_out;
    } else {
      EXPECT_EQ(why, why_not_applicable(law, subject)) << law.id;
    }
  }
  EXPECT_GT(left_out, 2);
}

TEST(Verify, of_a_subject_that_promises_no_bits_leaves_out_every_law_about_bits) {
  Subject subject = naive_subject();
  subject.can.drop({Ability::deterministic});
  int left_out = 0;
  for (const Law& law : all_laws()) {
    if (!law.exact || law.or_within_bounds) continue;
    EXPECT_EQ(verify_law(subject, law, {}).skipped, "its bits differ from run to run") << law.id;
    ++left_out;
  }
  EXPECT_GT(left_out, 20);
}

TEST(Verify, of_a_subject_that_promises_no_bits_asks_for_its_bounds) {
  Subject subject = with_bits_that_differ(naive_subject());
  subject.can.drop({Ability::deterministic});
  const SubjectVerdict verdict = expect_laws_kept(subject, {.cases_per_law = 25}, 40);
  for (const LawVerdict& law : verdict.laws) {
    if (!find_law(law.id).or_within_bounds) continue;
    EXPECT_NE(law.skipped, "its bits differ from run to run") << law.id;
  }
}

TEST(Verify, a_subject_that_promises_no_bits_still_may_not_read_what_is_hidden) {
  const std::pair<Mistake, std::vector<const char*>> mistakes[] = {
      {Mistake::masked_value_read, {"P29", "P33", "P34"}}, {Mistake::neighbour_leaks, {"P18"}}};
  for (const auto& [mistake, laws] : mistakes) {
    Subject subject = with_bits_that_differ(naive_subject(mistake));
    subject.can.drop({Ability::deterministic});
    for (const char* law : laws) {
      EXPECT_TRUE(verify_law(subject, find_law(law), {.cases_per_law = 60}).failure) << law;
    }
  }
}

class WrongSubject : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongSubject, fails_and_its_shrunk_token_replays_to_the_same_failure) {
  const Subject wrong = naive_subject(GetParam());
  const LawVerdict verdict =
      verify_law(wrong, find_law("equals_reference"), {.cases_per_law = 200});
  ASSERT_TRUE(verdict.failure);
  const Shape& shape = verdict.failure->shrunk.shape;
  EXPECT_LE(shape.q_tokens, 3) << verdict.failure->token;
  EXPECT_LE(shape.kv_tokens, 4) << verdict.failure->token;
  EXPECT_LE(shape.batch * shape.q_heads, 4) << verdict.failure->token;
  EXPECT_GT(verdict.failure->shrinks, 0);
  const Replay again = replay(verdict.failure->token, [&](const std::string& name) {
    EXPECT_EQ(name, "naive");
    return wrong;
  });
  EXPECT_EQ(again.replayed, verdict.failure->shrunk);
  EXPECT_EQ(again.result.outcome, Outcome::broken);
  EXPECT_EQ(again.result.message, verdict.failure->message);
  EXPECT_EQ(again.law.id, "equals_reference");
}

INSTANTIATE_TEST_SUITE_P(Verify, WrongSubject,
                         ::testing::Values(Mistake::acc_not_rescaled, Mistake::causal_one_off,
                                           Mistake::kv_head_modulo));

TEST(Verify, gives_the_same_verdict_for_the_same_seed) {
  const Subject wrong = naive_subject(Mistake::sum_not_rescaled);
  const auto first = verify_law(wrong, find_law("P2"), {.seed = 5});
  const auto second = verify_law(wrong, find_law("P2"), {.seed = 5});
  const auto other = verify_law(wrong, find_law("P2"), {.seed = 6});
  ASSERT_TRUE(first.failure && second.failure && other.failure);
  EXPECT_EQ(first.failure->token, second.failure->token);
  EXPECT_NE(first.failure->token, other.failure->token);
}

TEST(Verify, does_not_shrink_when_told_not_to) {
  const Subject wrong = naive_subject(Mistake::sum_not_rescaled);
  const auto verdict = verify_law(wrong, find_law("equals_reference"), {.shrink = false});
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->shrinks, 0);
}

TEST(Verify, runs_in_two_threads_at_once_with_the_same_verdicts) {
  std::vector<LawVerdict> verdicts(2);
  const auto work = [&](std::size_t slot) {
    verdicts[slot] = verify_law(naive_subject(Mistake::scale_forgotten),
                                find_law("equals_reference"), {.seed = 3});
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  ASSERT_TRUE(verdicts[0].failure && verdicts[1].failure);
  EXPECT_EQ(verdicts[0].failure->token, verdicts[1].failure->token);
}

TEST(Verify, turns_what_a_subject_throws_into_a_broken_law) {
  Subject throwing = naive_subject();
  throwing.run = [](const AttentionInput&, const RunOptions&) -> RunResult {
    throw std::runtime_error("rank 2 waits for rank 3");
  };
  const auto verdict = verify_law(throwing, find_law("equals_reference"), {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_THAT(verdict.failure->message, HasSubstr("rank 2 waits for rank 3"));
}

TEST(Verify, turns_a_wrong_output_shape_into_a_broken_law) {
  Subject wrong = naive_subject();
  wrong.run = [](const AttentionInput&, const RunOptions&) { return RunResult{}; };
  const auto verdict = verify_law(wrong, find_law("U"), {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_THAT(verdict.failure->message, HasSubstr("shape"));
}

TEST(Verify, never_passes_an_output_of_zeros_or_of_nan) {
  for (const double value : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
    Subject constant = naive_subject();
    constant.run = [value](const AttentionInput& input, const RunOptions&) {
      RunResult result;
      const Shape& shape = input.problem.shape;
      result.output = {Tensor<double>(shape.out(), value), Tensor<double>(shape.lse(), value)};
      return result;
    };
    const SubjectVerdict verdict = verify_subject(constant, {.shrink = false});
    EXPECT_FALSE(verdict.passed());
    for (const LawVerdict& law : verdict.laws) {
      const bool single_answer = law.id == "equals_reference" || law.id == "U" || law.id == "R" ||
                                 law.id == "P1" || law.id == "P2" ||
                                 (std::isnan(value) && law.id != "P39");  // P39 reads the inputs
      if (!single_answer || !law.skipped.empty()) continue;
      EXPECT_TRUE(law.failure) << law.id << " " << value;
    }
  }
}

TEST(Verify, counts_classes_discards_and_progress) {
  int calls = 0;
  std::string last = "none";
  VerifyOptions options{.laws = {"U", "o_and_lse_equal_the_exact_reference"}};
  options.progress = [&](int done, int all, const std::string& id) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(all, 2);
    last = id;
  };
  const SubjectVerdict verdict = verify_subject(naive_subject(), options);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(last, "");
  ASSERT_EQ(verdict.laws.size(), 2u);
  EXPECT_EQ(verdict.laws[0].cases, 40);
  EXPECT_EQ(verdict.laws[1].id, "equals_reference");
  int masks = 0;
  for (const auto& [name, count] : verdict.laws[1].classes) {
    if (name.starts_with("mask ")) masks += count;
  }
  EXPECT_EQ(masks, verdict.laws[1].cases);

  const auto none = verify_law(naive_subject(), failing_law([](auto&, auto&) {
                                 return LawResult{Outcome::discarded, 0, "of the moon"};
                               }),
                               {});
  EXPECT_EQ(none.cases, 0);
  EXPECT_THAT(none.skipped, HasSubstr("of the moon"));
}

TEST(Verify, skips_a_law_that_does_not_apply_and_says_why) {
  Law law = failing_law([](auto&, auto&) { return LawResult{Outcome::broken, 0, ""}; });
  law.not_applicable = [](const Subject&) { return std::string("it has no ring"); };
  const auto verdict = verify_law(naive_subject(), law, {});
  EXPECT_EQ(verdict.skipped, "it has no ring");
  EXPECT_FALSE(verdict.failure);
}

TEST(Verify, stops_shrinking_what_never_stops_failing) {
  int runs = 0;
  const Law law = failing_law([&](auto&, auto& c) {
    ++runs;
    return LawResult{c.shape.q_tokens > 1000 ? Outcome::held : Outcome::broken, 0, "always"};
  });
  const auto verdict = verify_law(naive_subject(), law, {});
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->shrunk.shape, (Shape{1, 1, 1, 0, 0, 1, 1}));
  EXPECT_LE(runs, 602);
}

TEST(Verify, names_unknown_laws_and_subjects_and_broken_tokens) {
  EXPECT_THROW(find_law("P0"), Error);
  EXPECT_THROW(verify_subject(naive_subject(), {.laws = {"nonsense"}}), Error);
  EXPECT_THROW(replay("ring"), Error);
  EXPECT_THROW(replay("ring/U"), Error);
  EXPECT_THROW(replay("/U/"), Error);
  EXPECT_THROW(replay("ring/U/b1"), Error);
}

TEST(VerifyInput, compares_sampled_rows_with_the_oracle) {
  Case c;
  c.shape = {1, 2, 1, 40, 40, 4, 4};
  c.mask = "causal";
  const Trial trial = make_trial(c);
  const InputVerdict all = verify_input(naive_subject(), trial.input(), trial.options, {});
  EXPECT_TRUE(all.report.passed()) << all.report.summary();
  EXPECT_EQ(all.rows_checked, 40);
  EXPECT_EQ(all.report.tensors.at(0).compared, 2 * 40 * 4);
  const InputVerdict some = verify_input(naive_subject(), trial.input(), trial.options, {0, 7, 39});
  EXPECT_TRUE(some.report.passed()) << some.report.summary();
  EXPECT_EQ(some.report.tensors.at(0).compared, 2 * 3 * 4);
  EXPECT_THROW(verify_input(naive_subject(), trial.input(), trial.options, {3, 3}), Error);
  EXPECT_THROW(verify_input(naive_subject(), trial.input(), trial.options, {40}), Error);
  const InputVerdict wrong =
      verify_input(naive_subject(Mistake::causal_one_off), trial.input(), trial.options, {39});
  EXPECT_FALSE(wrong.report.passed());
}

TEST(VerifyInput, compares_gradients_where_there_is_a_dout_and_the_subject_gives_them) {
  Case c;
  c.shape = {1, 2, 1, 6, 6, 4, 3};
  c.mask = "causal";
  const Trial trial = make_trial(c);
  const Tensor<double> dout = make_dout(c);
  AttentionInput input = trial.input();
  input.dout = dout.view();
  const Subject right = find_subject("optimized");
  const InputVerdict verdict = verify_input(right, input, trial.options, {});
  EXPECT_TRUE(verdict.report.passed()) << verdict.error;
  ASSERT_EQ(verdict.report.tensors.size(), 5u);
  EXPECT_EQ(verdict.report.tensors[2].tensor, "dq");
  EXPECT_EQ(verdict.report.tensors[4].compared, 6 * 3);
  const Subject wrong = with_results(right, [](RunResult& result, const auto&, const auto&) {
    result.gradients->dv.values().back() += 1;
  });
  const InputVerdict found = verify_input(wrong, input, trial.options, {});
  EXPECT_FALSE(found.report.passed());
  EXPECT_THAT(found.report.summary(), HasSubstr("dv(0, 0, 5, 2)"));
  EXPECT_EQ(verify_input(naive_subject(), input, trial.options, {}).report.tensors.size(), 2u);
}

TEST(VerifyInput, keeps_what_the_subject_threw) {
  Subject throwing = naive_subject();
  throwing.run = [](const AttentionInput&, const RunOptions&) -> RunResult {
    throw std::runtime_error("no device");
  };
  Case c;
  c.shape = {1, 1, 1, 3, 3, 1, 1};
  const Trial trial = make_trial(c);
  EXPECT_EQ(verify_input(throwing, trial.input(), trial.options, {}).error, "no device");
}

TEST(Subjects, are_found_by_name_number_and_both) {
  EXPECT_EQ(find_subject("ring").name, "ring");
  EXPECT_EQ(find_subject("05").name, "ring");
  EXPECT_EQ(find_subject("05_ring").name, "ring");
  EXPECT_THROW(find_subject("spring"), Error);
  EXPECT_GE(all_subjects().size(), 6u);
}

}  // namespace
}  // namespace ringlab::verify
