// Timing in turn: what a ratio is taken over, and what a contender that fails costs.
#include "optimized/bench/measure/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

/// Says one time after the other, the first of them unmeasured.
Contender says(const std::string& name, std::vector<double> seconds) {
  auto next = std::make_shared<std::size_t>(0);
  return {name, {}, [seconds, next] { return seconds.at((*next)++); }};
}

TEST(Timing, a_spread_interpolates_between_order_statistics) {
  const Spread spread = spread_of({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.p10, 1.4);
  EXPECT_DOUBLE_EQ(spread.p90, 4.6);
  EXPECT_DOUBLE_EQ(spread_of({7}).p10, 7);
}

TEST(Timing, the_inverse_of_a_spread_is_in_order) {
  const Spread spread = inverse({2, 1, 4}, 8);
  EXPECT_DOUBLE_EQ(spread.median, 4);
  EXPECT_DOUBLE_EQ(spread.p10, 2);
  EXPECT_DOUBLE_EQ(spread.p90, 8);
}

TEST(Timing, ratios_are_taken_within_a_round_and_the_first_run_does_not_count) {
  const std::vector<Timing> timings =
      time_in_turn({says("a", {99, 1, 10, 100}), says("b", {99, 2, 20, 200})}, {.rounds = 3});
  EXPECT_DOUBLE_EQ(timings[1].ratio.median, 2);
  EXPECT_DOUBLE_EQ(timings[1].ratio.p90, 2);
  EXPECT_DOUBLE_EQ(timings[0].seconds.median, 10);
}

TEST(Timing, one_that_fails_is_left_out_and_the_others_go_on) {
  int calls = 0;
  const Contender failing{"b", {}, [&calls]() -> double {
                            if (++calls == 3) {
                              throw_environment_error({"b", "to live", "it dead", ""});
                            }
                            return 1;
                          }};
  const std::vector<Timing> timings =
      time_in_turn({says("a", {1, 1, 1, 1}), failing, says("c", {2, 2, 2, 2})}, {.rounds = 3});
  EXPECT_EQ(calls, 3);
  EXPECT_NE(timings[1].failure.find("it dead"), std::string::npos);
  EXPECT_EQ(timings[2].failure, "");
  EXPECT_DOUBLE_EQ(timings[2].ratio.median, 2);
}

TEST(Timing, without_the_first_nobody_has_a_ratio_and_that_is_said) {
  const Contender failing{"a", {}, []() -> double {
                            throw_environment_error({"a", "to live", "it dead", ""});
                          }};
  const std::vector<Timing> timings =
      time_in_turn({failing, says("b", {1, 1, 1, 1})}, {.rounds = 3});
  EXPECT_NE(timings[1].failure.find("it dead"), std::string::npos);
  EXPECT_DOUBLE_EQ(timings[1].seconds.median, 1);
}

TEST(Timing, other_errors_are_not_swallowed) {
  const Contender wrong{"a", [] { throw std::logic_error("no"); }};
  EXPECT_THROW(time_in_turn({wrong}, {.rounds = 3}), std::logic_error);
}

TEST(Timing, sleeping_costs_no_processor_time) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  const std::vector<Timing> timings =
      time_in_turn({{"wall", sleep}, on_one_thread("thread", sleep)}, {.rounds = 3});
  EXPECT_GE(timings[0].seconds.p10, 0.05);
  EXPECT_LT(timings[1].seconds.p90, 0.025);
}

}  // namespace
}  // namespace ringlab::bench
