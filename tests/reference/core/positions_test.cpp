#include "reference/core/positions.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "reference/core/error.h"

namespace ringlab {
namespace {

using List = std::vector<std::int64_t>;

/// Lists with ascending stretches, so that runs of every stride and length occur.
rc::Gen<std::vector<PositionRun>> runs() {
  return rc::gen::container<std::vector<PositionRun>>(rc::gen::build<PositionRun>(
      rc::gen::set(&PositionRun::first, rc::gen::inRange<std::int64_t>(0, 12)),
      rc::gen::set(&PositionRun::count, rc::gen::inRange<std::int64_t>(0, 5)),
      rc::gen::set(&PositionRun::stride, rc::gen::inRange<std::int64_t>(1, 4))));
}

List expand(const std::vector<PositionRun>& runs) {
  List list;
  for (const PositionRun& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) list.push_back(run.first + i * run.stride);
  }
  return list;
}

RC_GTEST_PROP(PositionsTest, hold_the_list_their_runs_spell, ()) {
  const auto spelled = *runs();
  const List list = expand(spelled);
  const Positions positions(spelled);
  RC_ASSERT(positions.to_list() == list);
  RC_ASSERT(positions.size() == static_cast<std::int64_t>(list.size()));
  RC_ASSERT(positions.empty() == list.empty());
  for (std::size_t i = 0; i < list.size(); ++i) {
    RC_ASSERT(positions[static_cast<std::int64_t>(i)] == list[i]);
  }
}

RC_GTEST_PROP(PositionsTest, equal_lists_are_equal_however_they_were_made, ()) {
  const auto spelled = *runs();
  const Positions positions(spelled);
  RC_ASSERT(positions == Positions::from_list(expand(spelled)));
  RC_ASSERT(positions == Positions(positions.runs()));
  RC_ASSERT(positions.runs().size() <= spelled.size() + 1);
}

RC_GTEST_PROP(PositionsTest, a_slice_holds_the_rows_it_names, ()) {
  const auto spelled = *runs();
  const List list = expand(spelled);
  const auto size = static_cast<std::int64_t>(list.size());
  const auto first = *rc::gen::inRange<std::int64_t>(0, size + 1);
  const auto count = *rc::gen::inRange<std::int64_t>(0, size - first + 1);
  const Positions slice = Positions(spelled).slice(first, count);
  RC_ASSERT(slice.to_list() == List(list.begin() + first, list.begin() + first + count));
  RC_ASSERT(slice.size() == count);
  RC_ASSERT(slice == Positions::from_list(slice.to_list()));
}

TEST(PositionsTest, all_of_a_length_is_one_run_from_zero) {
  const Positions positions = Positions::all(7);
  ASSERT_EQ(positions.runs().size(), 1u);
  EXPECT_EQ(positions.runs()[0], (PositionRun{0, 7, 1}));
  EXPECT_TRUE(Positions::all(0).empty());
  EXPECT_EQ(Positions::all(0), Positions());
}

TEST(PositionsTest, chunks_that_touch_become_one_run) {
  EXPECT_EQ(Positions({{0, 3, 1}, {3, 4, 1}}), Positions::all(7));
  EXPECT_EQ(Positions({{5, 2, 4}, {13, 1, 9}}).runs(), (std::vector<PositionRun>{{5, 3, 4}}));
}

TEST(PositionsTest, lists_that_descend_or_repeat_are_kept_in_order) {
  const List list = {9, 4, 4, 0, 2, 4, 3};
  EXPECT_EQ(Positions::from_list(list).to_list(), list);
}

TEST(PositionsTest, a_billion_positions_cost_one_run) {
  const Positions positions({{3, 1'000'000'000, 1024}});
  EXPECT_EQ(positions[999'999'999], 3 + 999'999'999ll * 1024);
  EXPECT_EQ(positions.slice(500'000'000, 2).to_list(),
            (List{3 + 500'000'000ll * 1024, 3 + 500'000'001ll * 1024}));
}

TEST(PositionsTest, runs_near_the_largest_number_are_kept) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 61;
  const std::vector<PositionRun> two = {{0, 2, 2 * kLarge}, {5, 1, 1}};
  EXPECT_EQ(Positions(two).to_list(), (List{0, 2 * kLarge, 5}));
  const std::vector<PositionRun> touching = {{0, 2, kLarge}, {2 * kLarge, 2, kLarge}};
  EXPECT_EQ(Positions(touching).to_list(), (List{0, kLarge, 2 * kLarge, 3 * kLarge}));
}

TEST(PositionsTest, runs_that_are_no_positions_are_input_errors) {
  for (const PositionRun& run : std::vector<PositionRun>{{-1, 1, 1},
                                                         {0, -1, 1},
                                                         {0, 1, 0},
                                                         {0, 2, -1},
                                                         {INT64_MAX, 1, 1},
                                                         {1, INT64_MAX, 1},
                                                         {0, 3, INT64_MAX / 2 + 1}}) {
    EXPECT_THROW(Positions({run}), Error) << run.first << " " << run.count << " " << run.stride;
  }
  EXPECT_THROW(Positions::from_list({2, -2}), Error);
  EXPECT_THROW(Positions::all(-1), Error);
}

TEST(PositionsTest, slices_outside_are_input_errors) {
  const Positions positions = Positions::all(5);
  EXPECT_THROW(positions.slice(-1, 2), Error);
  EXPECT_THROW(positions.slice(2, 4), Error);
  EXPECT_THROW(positions.slice(6, 0), Error);
  EXPECT_THROW(positions.slice(0, -1), Error);
  EXPECT_THROW(positions.slice(1, INT64_MAX), Error);
  EXPECT_TRUE(positions.slice(5, 0).empty());
}

}  // namespace
}  // namespace ringlab
