// The own layout formulas against the library's, and the balance they buy, as integers.
#include "stages/10_balanced_ring/balanced_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "stages/common/stage.h"
#include "tests/printed.h"
#include "tests/stages/expected.h"

namespace ringlab::stages::testing {
namespace {

using balanced_ring::Place;
using balanced_ring::Spread;

class BalancedRingTest : public ::testing::TestWithParam<LayoutKind> {};
INSTANTIATE_TEST_SUITE_P(Layouts, BalancedRingTest,
                         ::testing::Values(LayoutKind::contiguous, LayoutKind::striped,
                                           LayoutKind::zigzag),
                         [](const auto& layout) { return std::string(layout_name(layout.param)); });

TEST_P(BalancedRingTest, positions_are_those_of_the_library_for_every_length_and_rank_count) {
  for (std::int64_t tokens = 0; tokens < 40; ++tokens) {
    for (int ranks = 1; ranks < 12; ++ranks) {
      const Layout layout(GetParam(), tokens, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(dealt_ring::positions_of({GetParam(), tokens, ranks}, rank),
                  layout.positions(rank))
            << tokens << " tokens, rank " << rank << " of " << ranks;
      }
    }
  }
}

TEST_P(BalancedRingTest, place_of_reads_positions_of_backwards) {
  for (std::int64_t tokens = 0; tokens < 40; ++tokens) {
    for (int ranks = 1; ranks < 12; ++ranks) {
      const Spread spread{GetParam(), tokens, ranks};
      std::set<std::pair<int, std::int64_t>> places;
      for (std::int64_t token = 0; token < tokens; ++token) {
        const Place place = balanced_ring::place_of(spread, token);
        ASSERT_EQ(dealt_ring::positions_of(spread, place.rank)[place.row], token);
        places.insert({place.rank, place.row});
      }
      ASSERT_EQ(static_cast<std::int64_t>(places.size()), tokens);  // a bijection
    }
  }
}

/// Pairs computed in all, and on the busiest rank of each step, added up over the steps.
struct Work {
  std::int64_t total = 0;
  std::int64_t critical = 0;
  bool same_on_all_ranks = true;  ///< at every step
};

Work causal_work(LayoutKind layout, std::int64_t tokens, int ranks) {
  const Problem problem = make_problem({1, 1, 1, tokens, tokens, 2, 2}, "causal");
  RunOptions options;
  options.ranks = ranks;
  options.layout = layout;
  const Stage& stage = *std::ranges::find(all_stages(), "balanced_ring", &Stage::name);
  const RunResult result = stage.run(random_tensors(problem, 1).input(problem), options);
  Work work;
  for (int step = 0; step < ranks; ++step) {
    std::vector<std::int64_t> pairs;
    for (const RankStats& rank : result.ranks) {
      const auto visit = std::ranges::find(rank.visits, step, &Visit::hop);
      pairs.push_back(visit == rank.visits.end() ? 0 : visit->pairs);
      work.total += pairs.back();
    }
    const auto [least, most] = std::ranges::minmax(pairs);
    work.critical += most;
    work.same_on_all_ranks = work.same_on_all_ranks && least == most;
  }
  return work;
}

// Useful share = total / (ranks · critical), compared as a fraction: a/b == c/d when a d == c b.

TEST(BalanceTest, contiguous_causal_work_is_useful_to_a_share_of_about_one_half) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t c : {1, 4, 5}) {  // tokens of a rank
      const Work work = causal_work(LayoutKind::contiguous, ranks * c, ranks);
      // (P c + 1) / ((2 P - 1) c + 1): P / (2 P - 1) for long chunks
      EXPECT_EQ(work.total * ((2 * ranks - 1) * c + 1), (ranks * c + 1) * ranks * work.critical);
    }
  }
  const Work work = causal_work(LayoutKind::contiguous, 64, 8);
  EXPECT_EQ(work.total, 64 * 65 / 2);
  EXPECT_EQ(work.critical, 8 * 9 / 2 + 7 * 8 * 8);
}

TEST(BalanceTest, zigzag_causal_work_is_the_same_on_every_rank_at_every_step) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::int64_t part : {1, 2, 5}) {  // 2P parts
      const Work work = causal_work(LayoutKind::zigzag, 2 * ranks * part, ranks);
      EXPECT_TRUE(work.same_on_all_ranks);
      EXPECT_EQ(work.total, ranks * work.critical);
    }
  }
}

TEST(BalanceTest, striped_causal_work_differs_by_a_diagonal) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::int64_t c : {1, 4, 5}) {
      const Work work = causal_work(LayoutKind::striped, ranks * c, ranks);
      // (P c + 1) / (P (c + 1))
      EXPECT_EQ(work.total * ranks * (c + 1), (ranks * c + 1) * ranks * work.critical);
    }
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
