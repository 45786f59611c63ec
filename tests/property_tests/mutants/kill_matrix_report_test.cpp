#include "property_tests/mutants/kill_matrix_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringlab::mutants {
namespace {

KillMatrix small_matrix() {
  KillMatrix matrix;
  Kill kill;
  kill.law = "P58";
  kill.cases = 7;
  kill.token = "mutant:a/P58/x";
  kill.message = "off";
  kill.shrunk.shape.q_tokens = 2;
  matrix.mutants.push_back({{"a", "ring", "one | two", "Why?", "classic"}, kill, 7, {"P58"}});
  matrix.laws.push_back({"P58", "ranks_do_not_matter", false, 1, 1, 0, "a"});
  matrix.correct_cases = 1000;
  return matrix;
}

TEST(KillMatrix, passes_only_without_survivors_useless_laws_and_false_alarms) {
  EXPECT_TRUE(small_matrix().passed());
  EXPECT_FALSE(KillMatrix{}.passed()) << "nothing measured is not passed";
  KillMatrix survivor = small_matrix();
  survivor.mutants[0].kill.reset();
  EXPECT_FALSE(survivor.passed());
  KillMatrix useless = small_matrix();
  useless.laws.push_back({"P59", "says_nothing", false, 0, 0, 3, ""});
  EXPECT_FALSE(useless.passed());
  KillMatrix alarm = small_matrix();
  alarm.false_alarms.push_back({"ring", "P58", "ring/P58/x", "off"});
  EXPECT_FALSE(alarm.passed());
}

TEST(KillMatrix, text_names_what_failed) {
  KillMatrix matrix = small_matrix();
  matrix.mutants.push_back({{"b", "ring", "x", "Why?", "classic"}, {}, 900, {}});
  matrix.laws.push_back({"P59", "says_nothing", false, 0, 0, 3, ""});
  matrix.false_alarms.push_back({"ring", "P58", "ring/P58/token", "off by one"});
  const std::string text = to_text(matrix);
  for (const char* words : {"1 of 2 mutants killed", "SURVIVED: b", "KILLS NOTHING: law P59",
                            "FALSE ALARM: ring/P58/token", "off by one"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(KillMatrix, markdown_has_a_row_per_mutant_and_escapes_bars) {
  const std::string page = to_markdown(small_matrix());
  EXPECT_NE(page.find("| `a` | one \\| two | classic | P58 | 7 |"), std::string::npos) << page;
  EXPECT_EQ(page.find(" s\n"), std::string::npos) << "times differ from run to run";
}

TEST(KillMatrix, page_says_what_kills) {
  KillMatrix matrix = small_matrix();
  matrix.mutants.push_back(matrix.mutants[0]);
  matrix.mutants[1].info.id = "b";
  matrix.mutants[1].kill->threw = true;
  matrix.mutants.push_back({{"c", "ring", "x", "Why?", "classic"}, {}, 900, {}});
  matrix.laws.push_back({"P59", "says_the_bits", true, 0, 1, 3, "b"});
  matrix.laws.push_back({"P60", "says_nothing", false, 0, 0, 3, ""});
  const KnownKills known = known_kills(to_markdown(matrix));
  using Ids = std::map<std::string, std::string>;
  EXPECT_EQ(known.first_laws, (Ids{{"a", "P58"}, {"b", "P58"}}));
  EXPECT_EQ(known.examples, (Ids{{"P58", "a"}, {"P59", "b"}}));
}

TEST(KillMatrix, summary_has_the_figures_and_a_digest_of_the_mistakes) {
  const nlohmann::json summary =
      to_summary(small_matrix(), {.seed = 5, .full = true, .progress = {}});
  EXPECT_EQ(summary["mutants"], 1);
  EXPECT_EQ(summary["killed"], 1);
  EXPECT_EQ(summary["seed"], 5);
  EXPECT_EQ(summary["full"], true);
  EXPECT_EQ(summary["laws"], nlohmann::json({"P58"}));
  EXPECT_EQ(summary["false_alarms"], 0);
  EXPECT_LT(summary["false_alarm_rate_below"], 0.01);
  KillMatrix other = small_matrix();
  other.mutants[0].info.breaks = "something else";
  EXPECT_NE(to_summary(other, {})["catalogue_sha256"], summary["catalogue_sha256"]);
}

TEST(KillMatrix, json_holds_the_token_of_the_shrunk_case) {
  const nlohmann::json json = to_json(small_matrix());
  EXPECT_TRUE(json["passed"].get<bool>());
  EXPECT_EQ(json["mutants"][0]["token"], "mutant:a/P58/x");
  EXPECT_EQ(json["mutants"][0]["first_killer"], "P58");
}

// Values of the closed form, computed by hand with z = 1.959964.
TEST(WilsonInterval, agrees_with_known_values) {
  EXPECT_NEAR(wilson_interval(10, 10).low, 0.722467, 1e-6);
  EXPECT_NEAR(wilson_interval(10, 10).high, 1.0, 1e-12);
  EXPECT_NEAR(wilson_interval(5, 10).low, 0.236593, 1e-6);
  EXPECT_NEAR(wilson_interval(5, 10).high, 0.763407, 1e-6);
  EXPECT_NEAR(wilson_interval(0, 1000).high, 0.003827, 1e-6);
}

TEST(WilsonInterval, of_no_trials_says_nothing) {
  EXPECT_EQ(wilson_interval(0, 0).low, 0);
  EXPECT_EQ(wilson_interval(0, 0).high, 1);
}

}  // namespace
}  // namespace ringlab::mutants
