// Goals: which are chosen, and when they are reached.
#include "optimized/bench/measure/goal.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "optimized/bench/measure/families.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

GoalOutcome outcome(Sense sense, double bound, double target, double median) {
  return {
      .goal = {.id = "X", .what = "", .unit = "", .bound = bound, .target = target, .sense = sense},
      .value = Spread{median, median, median}};
}

std::vector<std::string> ids(const std::vector<Goal>& goals) {
  std::vector<std::string> all;
  for (const Goal& goal : goals) all.push_back(goal.id);
  return all;
}

TEST(Goal, at_least_is_met_from_its_bound_on) {
  const auto verdict = [](double value) {
    return outcome(Sense::at_least, 0.9, 0.95, value).verdict();
  };
  EXPECT_EQ(verdict(0.8999), GoalVerdict::missed);
  EXPECT_EQ(verdict(0.9), GoalVerdict::bound);
  EXPECT_EQ(verdict(0.9499), GoalVerdict::bound);
  EXPECT_EQ(verdict(0.95), GoalVerdict::target);
  EXPECT_EQ(verdict(7), GoalVerdict::target);
}

TEST(Goal, at_most_is_met_up_to_its_bound) {
  const auto verdict = [](double value) {
    return outcome(Sense::at_most, 1.05, 1.01, value).verdict();
  };
  EXPECT_EQ(verdict(1.0501), GoalVerdict::missed);
  EXPECT_EQ(verdict(1.05), GoalVerdict::bound);
  EXPECT_EQ(verdict(1.01), GoalVerdict::target);
  EXPECT_EQ(verdict(0.5), GoalVerdict::target);
}

TEST(Goal, a_value_that_is_not_a_number_has_missed_in_either_sense) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), inf, -inf}) {
    EXPECT_EQ(outcome(Sense::at_least, 1, 2, value).verdict(), GoalVerdict::missed) << value;
    EXPECT_EQ(outcome(Sense::at_most, 2, 1, value).verdict(), GoalVerdict::missed) << value;
  }
}

TEST(Goal, the_median_decides_not_the_spread) {
  GoalOutcome one = outcome(Sense::at_least, 0.9, 0.95, 0.91);
  one.value = Spread{0.91, 0.1, 2.0};
  EXPECT_EQ(one.verdict(), GoalVerdict::bound);
}

TEST(Goal, verdicts_are_words_of_their_sense) {
  EXPECT_EQ(verdict_text(outcome(Sense::at_least, 1, 2, 1.5)), "at least");
  EXPECT_EQ(verdict_text(outcome(Sense::at_most, 2, 1, 1.5)), "at most");
  EXPECT_EQ(verdict_text(GoalOutcome{}), "skipped");
}

TEST(Goal, no_target_is_worse_than_its_bound_and_no_id_comes_twice) {
  std::set<std::string> seen;
  for (const Goal& goal : cpu_goals()) {
    EXPECT_TRUE(seen.insert(goal.id).second) << goal.id;
    if (goal.sense == Sense::at_least) {
      EXPECT_GE(goal.target, goal.bound) << goal.id;
    } else {
      EXPECT_LE(goal.target, goal.bound) << goal.id;
    }
    EXPECT_FALSE(goal.what.empty() || goal.unit.empty()) << goal.id;
  }
}

TEST(Goal, all_eleven_families_are_there) {
  std::set<std::string> families;
  for (const Goal& goal : cpu_goals()) families.insert(family_of(goal));
  EXPECT_EQ(families, (std::set<std::string>{"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9",
                                             "C10", "C11"}));
}

TEST(Only, a_family_is_all_of_its_goals_and_none_of_one_that_begins_alike) {
  EXPECT_EQ(ids(choose_goals("C1")), (std::vector<std::string>{"C1.full", "C1.causal"}));
}

TEST(Only, goals_come_once_and_in_their_own_order) {
  EXPECT_EQ(ids(choose_goals("C3,C1.causal,C1.causal,C3")),
            (std::vector<std::string>{"C1.causal", "C3"}));
}

TEST(Only, a_part_of_an_id_up_to_a_dot_names_all_below_it) {
  const std::vector<Goal> goals = choose_goals("C8.backward.bf16");
  EXPECT_EQ(goals.size(), 8u);
  for (const Goal& goal : goals) EXPECT_TRUE(goal.id.starts_with("C8.backward.bf16."));
}

TEST(Only, words_that_name_nothing_are_usage_errors) {
  for (const char* words : {"", "C12", "C1,", ",C1", "c1", "C1.ful", "C1 ,C2", "C"}) {
    try {
      choose_goals(words);
      FAIL() << "'" << words << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << words;
      EXPECT_NE(std::string(error.what()).find("C1, C2, C3"), std::string::npos) << error.what();
    }
  }
}

TEST(Families, every_wanted_goal_has_one_outcome_in_order_and_a_reason_if_skipped) {
  Plan plan{.rounds = 3,
            .quick = true,
            .goals = choose_goals("C3,C8,C10"),
            .peer_folder = "/nowhere/at/all"};
  double last = 0;
  const std::vector<GoalOutcome> outcomes = measure(plan, [&](double share, const std::string&) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1.000001);
    last = share;
  });
  ASSERT_EQ(outcomes.size(), plan.goals.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].goal.id, plan.goals[i].id);
    EXPECT_NE(!!outcomes[i].value, !outcomes[i].reason.empty()) << outcomes[i].goal.id;
  }
  EXPECT_EQ(outcomes.front().verdict(), GoalVerdict::skipped);
  EXPECT_NE(outcomes.front().reason.find("ringlab-sgemm"), std::string::npos);
  EXPECT_NE(outcomes[1].reason.find("--torch-python"), std::string::npos);
  EXPECT_TRUE(outcomes.back().value);
}

}  // namespace
}  // namespace ringlab::bench
