// What causal_ring promises beyond the right answer: no leak, and no work for nothing.
#include <gtest/gtest.h>

#include "stages/common/stage.h"
#include "tests/printed.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

const Stage& causal_ring() { return stage_named("causal_ring"); }

class CausalRingTest : public ::testing::TestWithParam<LayoutKind> {
 protected:
  static RunOptions options() {
    RunOptions o;
    o.ranks = 4;
    o.layout = GetParam();
    o.tile_queries = 3;
    o.tile_keys = 2;
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, CausalRingTest,
                         ::testing::Values(LayoutKind::contiguous, LayoutKind::striped,
                                           LayoutKind::zigzag),
                         [](const auto& layout) { return std::string(layout_name(layout.param)); });

TEST_P(CausalRingTest, changing_a_token_changes_no_row_before_it_bit_for_bit) {
  const std::int64_t tokens = 19;
  const Problem problem = make_problem({1, 2, 1, tokens, tokens, 3, 3}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 1);
  const AttentionOutput before = causal_ring().run(tensors.input(problem), options()).output;
  for (std::int64_t changed = 0; changed < tokens; ++changed) {
    AttentionTensors other = tensors;
    for (std::int64_t c = 0; c < 3; ++c) {
      other.k(0, 0, changed, c) = 100;
      other.v(0, 0, changed, c) = -100;
    }
    const AttentionOutput after = causal_ring().run(other.input(problem), options()).output;
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < changed; ++row) {
        ASSERT_EQ(after.lse(0, head, row, 0), before.lse(0, head, row, 0)) << row;
        for (std::int64_t c = 0; c < 3; ++c) {
          ASSERT_EQ(after.out(0, head, row, c), before.out(0, head, row, c)) << row;
        }
      }
      EXPECT_NE(after.lse(0, head, changed, 0), before.lse(0, head, changed, 0)) << changed;
    }
  }
}

TEST_P(CausalRingTest, visits_are_the_blocks_that_somebody_sees_and_their_pairs_add_up) {
  const Problem problem = make_problem({1, 1, 1, 21, 21, 2, 2}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 2);
  const RunResult result = causal_ring().run(tensors.input(problem), options());
  const Layout layout(GetParam(), 21, 4);
  std::int64_t pairs = 0;
  for (int rank = 0; rank < 4; ++rank) {
    std::size_t needed = 0;
    for (int owner = 0; owner < 4; ++owner) {
      needed += problem.mask.count(layout.positions(rank), layout.positions(owner)) > 0 ? 1 : 0;
    }
    const std::vector<Visit>& visits = result.ranks[static_cast<std::size_t>(rank)].visits;
    EXPECT_EQ(visits.size(), needed);
    for (const Visit& visit : visits) {
      EXPECT_EQ(visit.hop, (rank - visit.owner + 4) % 4);
      pairs += visit.pairs;
    }
  }
  EXPECT_EQ(pairs, 21 * 22 / 2);
}

TEST(CausalRingContiguousTest, half_of_the_blocks_off_the_diagonal_are_skipped) {
  const Problem problem = make_problem({1, 1, 1, 32, 32, 2, 2}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 3);
  RunOptions options;
  options.ranks = 8;
  const RunResult result = causal_ring().run(tensors.input(problem), options);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(result.ranks[rank].visits.size(), rank + 1);  // the others are in its future
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
