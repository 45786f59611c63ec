// Who is named as slow, and above all who is not.
#include "cli/report/trace/slowness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringlab::report {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::vector<StepTimes> steps(const std::vector<double>& seconds) {
  std::vector<StepTimes> ranks;
  for (const double s : seconds) ranks.push_back({.seconds = s});
  return ranks;
}

/// A ring of links of 1 MB each that were waited for so long; all ranks equally busy.
std::vector<Link> ring(const std::vector<double>& transfer_s) {
  std::vector<Link> links;
  const int ranks = static_cast<int>(transfer_s.size());
  for (int from = 0; from < ranks; ++from) {
    links.push_back({.to = (from + 1) % ranks,
                     .stats = {.from = from,
                               .received_bytes = 1'000'000,
                               .transfer_s = transfer_s[static_cast<std::size_t>(from)]}});
  }
  return links;
}

TEST(Straggler, is_the_rank_beyond_one_and_a_half_times_the_median_of_the_others) {
  EXPECT_FALSE(find_straggler(steps({2, 2, 3, 2}), 0));
  const auto found = find_straggler(steps({2, 2, 3.25, 2}), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_DOUBLE_EQ(found->others_s, 2);
  EXPECT_DOUBLE_EQ(found->factor, 1.625);
}

TEST(Straggler, does_not_count_for_its_own_median) {
  const auto found = find_straggler(steps({1, 2}), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_DOUBLE_EQ(found->factor, 2);
}

TEST(Straggler, is_nobody_among_none_one_or_unknown_ranks) {
  EXPECT_FALSE(find_straggler({}, 0));
  EXPECT_FALSE(find_straggler(steps({5}), 0));
  EXPECT_FALSE(find_straggler(steps({kUnknown, 5, kUnknown}), 0));
  EXPECT_FALSE(find_straggler(steps({kUnknown, kUnknown}), 0));
}

TEST(Straggler, is_found_wherever_unknown_ranks_lie) {
  for (const auto& seconds :
       {std::vector<double>{kUnknown, 1, 9}, {9, kUnknown, 1}, {1, 9, kUnknown}}) {
    const auto found = find_straggler(steps(seconds), 0);
    ASSERT_TRUE(found);
    EXPECT_EQ(seconds[static_cast<std::size_t>(found->rank)], 9);
  }
}

TEST(Straggler, is_nobody_where_the_others_take_no_time) {
  EXPECT_FALSE(find_straggler(steps({0, 0, 1}), 0));
  EXPECT_FALSE(find_straggler(steps({0, 0, 0}), 0));
}

TEST(Straggler, must_cost_the_run_something_over_all_its_steps) {
  std::vector<StepTimes> ranks = steps({0.25, 0.25, 0.75});
  EXPECT_TRUE(find_straggler(ranks, 0.5));
  EXPECT_FALSE(find_straggler(ranks, 0.5625));
  ranks[2].steps = 2;
  EXPECT_TRUE(find_straggler(ranks, 1));
  EXPECT_FALSE(find_straggler(ranks, 1.125));
}

TEST(LeastCost, is_a_tenth_of_the_run_and_a_quarter_of_a_second) {
  EXPECT_DOUBLE_EQ(least_cost_s(0), 0.25);
  EXPECT_DOUBLE_EQ(least_cost_s(2), 0.25);
  EXPECT_DOUBLE_EQ(least_cost_s(30), 3);
}

TEST(Straggler, is_not_a_rank_that_has_more_to_do) {
  std::vector<StepTimes> ranks = steps({1, 1, 4});
  ranks[2].work = 4;
  EXPECT_FALSE(find_straggler(ranks, 0));
  ranks[2].work = 2;
  EXPECT_TRUE(find_straggler(ranks, 0));
}

TEST(Straggler, is_not_a_rank_with_small_expensive_blocks) {
  std::vector<StepTimes> ranks = steps({1, 1, 1.25});
  ranks[2].work = 0.01;
  EXPECT_FALSE(find_straggler(ranks, 0));
}

TEST(SlowLink, is_the_one_beyond_three_times_the_seconds_per_byte_of_the_others) {
  EXPECT_FALSE(find_slow_link(ring({1, 3, 1}), 0.25));
  const auto found = find_slow_link(ring({1, 4, 1}), 0.25);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->from, 1);
  EXPECT_EQ(found->to, 2);
  EXPECT_DOUBLE_EQ(found->bytes_per_s, 250'000);
  EXPECT_DOUBLE_EQ(found->others_bytes_per_s, 1'000'000);
}

TEST(SlowLink, may_be_one_of_two_and_is_never_one_alone) {
  EXPECT_TRUE(find_slow_link(ring({1, 9}), 0.25));
  EXPECT_FALSE(find_slow_link(ring({9}), 0.25));
  EXPECT_FALSE(find_slow_link({}, 0.25));
}

TEST(SlowLink, must_cost_the_run_something) {
  EXPECT_TRUE(find_slow_link(ring({0, 0.5, 0}), 0.5));
  EXPECT_FALSE(find_slow_link(ring({0, 0.5, 0}), 0.5625));
}

TEST(SlowLink, is_compared_by_what_it_carried) {
  std::vector<Link> links = ring({1, 9, 1});
  links[1].stats.received_bytes = 9'000'000;
  EXPECT_FALSE(find_slow_link(links, 0.25));
  links[1].stats.received_bytes = 0;
  EXPECT_FALSE(find_slow_link(links, 0.25));
}

TEST(SlowLink, is_not_blamed_for_a_sender_that_is_late_or_busy) {
  std::vector<Link> links = ring({0, 4, 0});
  links[1].stats.late_s = 100;
  links[1].sender_busy_s = 4;
  EXPECT_FALSE(find_slow_link(links, 0.25));
  links[1].sender_busy_s = 2;
  const auto found = find_slow_link(links, 0.25);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->waited_s, 2);
}

TEST(SlowLink, says_so_when_nobody_waited_for_the_others) {
  const auto found = find_slow_link(ring({0, 2, 0}), 0.25);
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::isinf(found->others_bytes_per_s));
  EXPECT_EQ(slow_link_sentence(*found),
            "rank 1 to rank 2: 488 KiB/s in 2.0 s of waiting, nobody waited for the others");
}

TEST(Sentences, name_the_rank_or_the_link_and_what_it_was_compared_with) {
  EXPECT_EQ(straggler_sentence({.rank = 1, .seconds = 0.4, .others_s = 0.1, .factor = 4}),
            "rank 1: 400.0 ms a step, 4.0 times the median of the others (100.0 ms)");
  EXPECT_EQ(
      slow_link_sentence(
          {.from = 2, .to = 0, .waited_s = 0.5, .bytes_per_s = 2048, .others_bytes_per_s = 4096}),
      "rank 2 to rank 0: 2.00 KiB/s in 500.0 ms of waiting, the others 4.00 KiB/s");
}

}  // namespace
}  // namespace ringlab::report
