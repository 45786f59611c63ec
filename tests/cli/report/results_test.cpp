// Verdicts of results, and the explanation of a wrong answer.
#include "cli/report/results.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/report/hop_map.h"
#include "cli/report/human.h"
#include "cli/report/wrong_answer.h"
#include "property_tests/laws/trial.h"

namespace ringlab::report {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

SubjectResult right_subject(const std::string& name) {
  SubjectResult result;
  result.subject.name = name;
  TensorReport o{"o", 10, 0, {}};
  o.worst.ratio = 0.5;
  result.on_input.report.tensors = {o};
  result.on_input.run.ranks.resize(2);
  result.on_input.run.ranks[0].visits = {{0, 0, 3}, {1, 1, 1}};
  verify::LawVerdict held;
  held.id = "P1";
  held.name = "constant_values_pass_through";
  held.statement = "if v is c, o is c";
  held.cases = 40;
  held.worst_ratio = 0.25;
  verify::LawVerdict skipped;
  skipped.id = "P72";
  skipped.name = "peak_memory";
  skipped.skipped = "K/V do not travel";
  result.laws.laws = {held, skipped};
  return result;
}

verify::LawFailure failure() {
  verify::LawFailure broken;
  broken.shrunk.shape = {1, 1, 1, 2, 2, 1, 1};
  broken.token = "ring/P1/b1";
  broken.message = "o at [0, 0, 0, 0] got 1, exact <2>";
  return broken;
}

TEST(WrongAnswer, has_a_name_or_says_that_there_is_none_and_shows_one_law_of_many) {
  SubjectResult wrong = right_subject("ring");
  EXPECT_FALSE(wrong_answer(wrong, DeviceKind::cpu));
  wrong.laws.laws[0].failure = failure();
  verify::LawVerdict other = wrong.laws.laws[0];
  other.id = "P2";
  wrong.laws.laws.push_back(other);
  wrong.insight.of_law = "P2";
  wrong.insight.diagnosis.findings = {"the answer depends on when messages arrive"};
  const WrongAnswer answer = *wrong_answer(wrong, DeviceKind::cuda);
  EXPECT_EQ(answer.name, "no known mistake matches");
  EXPECT_EQ(answer.law, "P2: if v is c, o is c");
  EXPECT_EQ(answer.other_laws, 1);
  EXPECT_EQ(answer.question, "");
  const std::string text = wrong_answer_text(answer);
  EXPECT_TRUE(text.starts_with("\nring is WRONG: no known mistake matches\n"));
  EXPECT_TRUE(contains(text, "seen      the answer depends on when messages arrive"));
  EXPECT_TRUE(contains(text, "breaks    P2: if v is c, o is c; and 1 other law\n"));
  EXPECT_TRUE(contains(text, "replay    ringlab verify --replay ring/P1/b1 --device cuda\n"));
}

TEST(WrongAnswer, has_six_digits_and_more_only_where_numbers_would_look_alike) {
  EXPECT_EQ(
      human_finding("o(0, 0, 1, 0): got 0.6322777271270752, exact 0.6423912339336473, allowed "
                    "2.516522402171403e-06, ratio 4.02e+03"),
      "o(0, 0, 1, 0): got 0.632278, exact 0.642391, allowed 2.52e-06, ratio 4.02e+03");
  EXPECT_EQ(human_finding("got 1.00000012, exact 1.00000024, allowed 1e-9"),
            "got 1.0000001, exact 1.0000002, allowed 1e-09");
  EXPECT_EQ(human_finding("got -inf, exact -9, allowed 0"), "got -inf, exact -9, allowed 0");
  EXPECT_EQ(human_finding("it threw"), "it threw");
}

TEST(WrongAnswer, says_everything_about_its_case_that_is_not_usual) {
  verify::Case c;
  c.shape = {1, 1, 1, 2, 2, 1, 3};
  EXPECT_EQ(case_words(c), "N=2 tokens, full, head_dim 1, v_dim 3, f32, normal values");
  c.shape.v_dim = 1;
  c.scale = verify::ScaleKind::unit;
  c.threads = 3;
  c.modifiers.alibi = true;
  EXPECT_EQ(case_words(c),
            "N=2 tokens, full, head_dim 1, f32, normal values, scale 1, ALiBi, 3 threads");
}

TEST(WrongAnswer, shows_the_numbers_of_a_case_that_is_worked_out_by_hand) {
  verify::Case c;
  c.shape = {1, 1, 1, 2, 2, 1, 1};
  c.mask = "causal";
  c.ranks = 2;
  c.family = verify::Family::small_ints;
  const auto rows = number_rows(c, verify::Element{"o", 0, 0, 1, 0});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(rows[1].starts_with("key 1 (rank 1)    k ")) << rows[1];
  EXPECT_TRUE(rows[2].starts_with("query 0 (rank 0)  q ")) << rows[2];
  EXPECT_TRUE(contains(rows[2], "weights 1 .   o ")) << rows[2];
  EXPECT_TRUE(rows[3].ends_with("   <- wrong")) << rows[3];
  EXPECT_FALSE(rows[2].ends_with("wrong"));
  c.shape.kv_tokens = 7;
  EXPECT_TRUE(number_rows(c, {}).empty());
}

TEST(WrongAnswer, shows_wrong_numbers_beside_the_right_ones) {
  verify::Case c;
  c.shape = {1, 1, 1, 1, 1, 1, 2};
  c.mask = "full";
  c.family = verify::Family::small_ints;
  const Tensor<double> v = verify::make_trial(c).data.v;
  verify::ShownAnswer answer;
  answer.got.out = v;
  answer.off.out = Tensor<double>(c.shape.out());
  answer.got.lse = answer.off.lse = Tensor<double>(c.shape.lse());
  EXPECT_FALSE(contains(number_rows(c, {}, answer)[1], "got"));
  answer.got.out(0, 0, 0, 1) = 12345.678;
  answer.off.out(0, 0, 0, 1) = answer.off.lse(0, 0, 0, 0) = 1;
  const auto rows = number_rows(c, {}, answer);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[1].ends_with(fmt::format("   got ({:.6g}, 12345.7!)", v(0, 0, 0, 0))))
      << rows[1];
  EXPECT_TRUE(contains(rows[2], "lse ")) << rows[2];
  EXPECT_TRUE(rows[2].ends_with("   got 0!")) << rows[2];
}

TEST(WrongAnswer, is_led_by_a_law_that_shows_it_alone_and_says_that_both_runs_are_nan) {
  const auto broken = [](const char* id, const char* message) {
    verify::LawVerdict law;
    law.id = id;
    law.failure = verify::LawFailure{};
    law.failure->message = message;
    return law;
  };
  SubjectResult subject;
  subject.insight.of_law = "P1";
  subject.laws.laws = {
      broken("P1", "o(0, 0, 0, 0): got nan, other run nan, allowed 0 (the same bits)")};
  ASSERT_TRUE(wrong_answer(subject, DeviceKind::cpu));
  EXPECT_EQ(wrong_answer(subject, DeviceKind::cpu)->found, "o(0, 0, 0, 0): NaN in both runs");
  subject.laws.laws.push_back(
      broken("P2", "o(0, 0, 0, 0): got nan, exact 1, allowed 0.5, ratio inf"));
  EXPECT_TRUE(wrong_answer(subject, DeviceKind::cpu)->law.starts_with("P2"));
  EXPECT_EQ(wrong_answer(subject, DeviceKind::cpu)->found,
            "o(0, 0, 0, 0): NaN, exact 1, allowed 0.5, ratio inf");
}

TEST(WrongAnswer, draws_pairs_by_rank_and_step_around_the_wrong_row) {
  verify::Case c;
  c.shape = {1, 1, 1, 6, 6, 1, 1};
  c.mask = "causal";
  c.ranks = 3;
  const auto rows = pair_rows(c, verify::Element{"o", 0, 0, 3, 0}, 4);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], "keys of rank      0 0 1 1 2 2   each pair: the step that brings it");
  EXPECT_EQ(rows[1], "query 2 (rank 1)  1 1 0 . . .");
  EXPECT_EQ(rows[2], "query 3 (rank 1)  1 1 0 0 . .   <- wrong");
  EXPECT_EQ(rows[3], "query 4 (rank 2)  2 2 1 1 0 .");
  EXPECT_TRUE(pair_rows(c, std::nullopt, 1).empty());
}

TEST(Results, a_skipped_law_is_not_counted_as_held) {
  EXPECT_EQ(right_subject("ring").laws_held(), 1);
}

TEST(WrongAnswer, asks_the_question_about_its_mistake) {
  SubjectResult wrong = right_subject("ring");
  wrong.laws.laws[0].failure = failure();
  wrong.insight.of_law = "P1";
  wrong.insight.diagnosis.explains = {
      {"ring.last_chunk_dropped", "the chunk that comes last is never computed on"}};
  const WrongAnswer answer = *wrong_answer(wrong, DeviceKind::cpu);
  EXPECT_EQ(answer.name, "the chunk that comes last is never computed on");
  EXPECT_TRUE(contains(answer.question, "How many chunks must a rank compute on"));
  EXPECT_EQ(answer.replay, "ringlab verify --replay ring/P1/b1");
}

TEST(HopMap, tells_as_json_which_pairs_are_visible_and_who_holds_their_tokens) {
  verify::Case shown;
  shown.shape = {1, 1, 1, 3, 3, 2, 2};
  shown.mask = "causal";
  shown.ranks = 2;
  shown.direction = RingDirection::previous;
  const auto json = HopMap(shown).json();
  EXPECT_EQ(json.dump(),
            R"({"ranks":2,"direction":"previous","query_ranks":[0,0,1],"key_ranks":[0,0,1],)"
            R"("visible":["100","110","111"]})");
}

TEST(HopMap, cases_without_pairs_or_with_too_many_are_left_out_of_json) {
  verify::Case shown;
  shown.shape = {1, 1, 1, 0, 3, 2, 2};
  EXPECT_TRUE(HopMap(shown).json().is_null());
  shown.shape = {1, 1, 1, 97, 3, 2, 2};
  EXPECT_TRUE(HopMap(shown).json().is_null());
  shown.shape = {1, 1, 1, 96, 3, 2, 2};
  EXPECT_FALSE(HopMap(shown).json().is_null());
}

TEST(Results, an_error_on_the_input_is_wrong_even_without_a_report) {
  SubjectResult result = right_subject("ring");
  EXPECT_TRUE(result.passed());
  result.on_input.report.tensors.clear();
  result.on_input.error = "rank 1 failed";
  EXPECT_FALSE(result.passed());
}

TEST(Results, a_skipped_input_is_neither_passed_nor_wrong) {
  SubjectResult result = right_subject("ring");
  result.input_skipped = "does not compute in f16";
  EXPECT_FALSE(result.input_passed());
  EXPECT_TRUE(result.passed());
}

TEST(Results, a_broken_law_has_no_ratio_that_looks_fine) {
  SubjectResult result = right_subject("ring");
  EXPECT_EQ(result.laws_text(), "0.25");
  result.laws.laws[0].failure = failure();
  EXPECT_EQ(result.laws_text(), "1 broken");
  EXPECT_GT(result.worst_ratio(), 1);
  EXPECT_EQ(result.verdict(), "wrong");
}

TEST(Results, nothing_checked_is_not_passed) {
  SubjectResult result;
  result.input_skipped = "does not compute in f16";
  EXPECT_EQ(result.verdict(), "not checked");
  EXPECT_FALSE(result.passed());
}

TEST(Results, a_law_without_a_case_says_nothing) {
  SubjectResult result = right_subject("ring");
  result.laws.laws[0].cases = 0;
  EXPECT_EQ(result.laws_held(), 0);
  EXPECT_EQ(result.laws_without_cases(), 1);
}

}  // namespace
}  // namespace ringlab::report
