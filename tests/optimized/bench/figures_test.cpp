// The table of what belongs beside the goals.
#include <gtest/gtest.h>

#include <limits>

#include "optimized/bench/measure/goal.h"

namespace ringlab::bench {
namespace {

GoalOutcome outcome(const std::string& id, std::vector<std::pair<std::string, Spread>> beside) {
  GoalOutcome one{.goal = {.id = id, .what = "", .unit = ""}};
  one.beside = std::move(beside);
  return one;
}

TEST(Figures, every_name_is_a_column_and_what_is_missing_is_empty) {
  const FigureTable table =
      figures_beside({outcome("A", {{"ms", {1.23456, 1, 2}}}),
                      outcome("B", {{"GB/s", {1234.5, 1, 2}}}), outcome("C", {})});
  EXPECT_EQ(table.names, (std::vector<std::string>{"ms", "GB/s"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].cells, (std::vector<std::string>{"1.23", ""}));
  EXPECT_EQ(table.rows[1].cells, (std::vector<std::string>{"", "1234"}));
}

TEST(Figures, subjects_come_first_where_there_are_any) {
  GoalOutcome one = outcome("A", {{"ms", {1, 1, 1}}});
  one.subject = "Hopper";
  const FigureTable table = figures_beside({one, outcome("B", {{"ms", {2, 2, 2}}})});
  EXPECT_EQ(table.names.front(), "by");
  EXPECT_EQ(table.rows[0].cells.front(), "Hopper");
  EXPECT_EQ(table.rows[1].cells.front(), "");
}

TEST(Figures, values_that_are_not_numbers_are_shown_as_such) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(figures_beside({outcome("A", {{"x", {nan, nan, nan}}})}).rows[0].cells[0], "nan");
}

}  // namespace
}  // namespace ringlab::bench
