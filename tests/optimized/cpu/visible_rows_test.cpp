#include "optimized/cpu/visible_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ringlab::cpu {
namespace {

TEST(VisibleRows, are_those_whose_positions_lie_in_the_interval) {
  for (std::int64_t stride = 1; stride <= 4; ++stride) {
    const PositionRun run{.first = 5, .count = 6, .stride = stride};
    for (std::int64_t begin = 0; begin < 32; ++begin) {
      for (std::int64_t end = begin; end < 33; ++end) {
        const RowRange rows = rows_in(run, {begin, end});
        for (std::int64_t row = 0; row < run.count; ++row) {
          const std::int64_t position = run.first + row * stride;
          EXPECT_EQ(rows.first <= row && row < rows.last, begin <= position && position < end)
              << "row " << row << ", stride " << stride << ", keys " << begin << " to " << end;
        }
      }
    }
  }
}

TEST(VisibleRows, an_interval_that_ends_before_it_begins_holds_none) {
  EXPECT_TRUE(rows_in({.first = 0, .count = 8, .stride = 1}, {6, 2}).empty());
  EXPECT_TRUE(rows_in({.first = 0, .count = 8, .stride = 1}, {0, 0}).empty());
}

TEST(VisibleRows, a_view_knows_what_somebody_and_what_everybody_sees) {
  TileView view;
  view.add({2, 6}, true);
  view.add({4, 9}, false);
  EXPECT_EQ(view.some.first, 2);
  EXPECT_EQ(view.some.last, 9);
  EXPECT_EQ(view.all.first, 4);
  EXPECT_EQ(view.all.last, 6);
}

TEST(VisibleRows, a_query_that_sees_nothing_leaves_nothing_that_everybody_sees) {
  for (const bool first : {true, false}) {
    TileView view;
    if (first) view.add({}, true);
    view.add({3, 7}, !first);
    if (!first) view.add({}, false);
    EXPECT_EQ(view.some.first, 3);
    EXPECT_EQ(view.some.last, 7);
    EXPECT_TRUE(view.all.empty());
  }
}

}  // namespace
}  // namespace ringlab::cpu
