// What prefetching into slots promises beyond the right answer: the ring's bits, whatever happens.
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/core/error.h"
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

class SlotsTest : public ::testing::TestWithParam<int> {
 protected:
  static RunOptions options(int ranks) {
    RunOptions o;
    o.ranks = ranks;
    o.slots = GetParam();
    o.transport = TransportKind::simulated;
    o.tile_queries = 3;
    o.tile_keys = 2;
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Slots, SlotsTest, ::testing::Values(1, 2, 3, 4, 20));

TEST_P(SlotsTest, have_the_bits_of_the_plain_ring_under_any_delays_and_without_buffers) {
  const Stage& ring = stage_named("ring");
  RandomRuns runs(static_cast<std::uint64_t>(GetParam()));
  for (const int ranks : {1, 2, 3, 4, 5, 9}) {
    for (const std::int64_t tokens : {0, 1, 4, 19}) {
      const Problem problem = make_problem({1, 2, 1, tokens, tokens, 3, 2}, "causal");
      const AttentionTensors tensors = random_tensors(problem, runs.seed());
      RunOptions o = options(ranks);
      o.layout = static_cast<LayoutKind>(runs.below(3));
      o.direction = static_cast<RingDirection>(runs.below(2));
      const AttentionOutput want = ring.run(tensors.input(problem), o).output;
      for (std::uint64_t delays = 0; delays < 6; ++delays) {
        o.delay_seed = runs.seed();
        o.rendezvous = delays % 2 == 1;
        for (const char* name : {"slotted_ring", "overlapped_ring"}) {
          const RunResult got = stage_named(name).run(tensors.input(problem), o);
          ASSERT_EQ(got.leftover_messages, 0);
          ASSERT_EQ(got.output.out.values(), want.out.values())
              << name << ": " << describe(problem, o);
          ASSERT_EQ(got.output.lse.values(), want.lse.values())
              << name << ": " << describe(problem, o);
        }
      }
    }
  }
}

TEST_P(SlotsTest, do_not_change_a_bit_of_the_overlapped_causal_ring) {
  const Stage& stage = stage_named("overlapped_causal_ring");
  RandomRuns runs(static_cast<std::uint64_t>(GetParam()) + 50);
  for (int round = 0; round < repetitions(60); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    RunOptions o = runs.options();
    o.ranks = static_cast<int>(1 + runs.below(9));
    o.transport = TransportKind::threads;
    const AttentionOutput want = stage.run(tensors.input(problem), o).output;
    o.slots = GetParam();
    o.transport = TransportKind::simulated;
    const RunResult got = stage.run(tensors.input(problem), o);
    ASSERT_EQ(got.leftover_messages, 0);
    ASSERT_EQ(got.output.out.values(), want.out.values()) << describe(problem, o);
    ASSERT_EQ(got.output.lse.values(), want.lse.values()) << describe(problem, o);
  }
}

TEST_P(SlotsTest, have_the_bits_of_the_causal_ring_where_blocks_are_skipped) {
  RandomRuns runs(static_cast<std::uint64_t>(GetParam()) + 70);
  for (int round = 0; round < repetitions(60); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    RunOptions o = runs.options();
    o.slots = GetParam();
    const AttentionOutput want = stage_named("causal_ring").run(tensors.input(problem), o).output;
    for (const char* name : {"dealt_ring", "balanced_ring", "skipping_ring"}) {
      const AttentionOutput got = stage_named(name).run(tensors.input(problem), o).output;
      ASSERT_EQ(got.out.values(), want.out.values()) << name << ": " << describe(problem, o);
      ASSERT_EQ(got.lse.values(), want.lse.values()) << name << ": " << describe(problem, o);
    }
  }
}

TEST_P(SlotsTest, right_answers_and_closed_forms_hold_for_uneven_chunks) {
  RandomRuns runs(static_cast<std::uint64_t>(GetParam()) + 100);
  for (const std::string name :
       {"slotted_ring", "overlapped_ring", "skipping_ring", "overlapped_causal_ring"}) {
    const Stage& stage = stage_named(name);
    for (int round = 0; round < repetitions(100); ++round) {
      const Shape shape = runs.shape();
      const Problem problem = make_problem(shape, runs.mask(shape));
      RunOptions o = runs.options();
      o.slots = GetParam();
      o.kv_layout = runs.uneven_layout(shape.kv_tokens, o.ranks);
      const AttentionTensors tensors = random_tensors(problem, runs.seed());
      const RunResult result = stage.run(tensors.input(problem), o);
      ASSERT_EQ(
          difference(result.output, expected_of(tensors.input(problem), stage.profile(problem, o))),
          "")
          << describe(problem, o);
      for (int rank = 0; rank < o.ranks; ++rank) {
        const RankStats& stats = result.ranks[static_cast<std::size_t>(rank)];
        const StatedCosts costs = stage.costs(problem, o, rank);
        ASSERT_EQ(stats.sent_bytes, costs.sent_bytes) << describe(problem, o);
        ASSERT_EQ(stats.sent_messages, costs.sent_messages) << describe(problem, o);
        ASSERT_EQ(stats.peak_kv_bytes, costs.peak_kv_bytes) << describe(problem, o);
      }
    }
  }
}

TEST(SlotsExampleTest, a_rank_holds_its_own_chunk_and_its_slots_and_no_more_than_there_are) {
  const Problem problem = make_problem({1, 4, 2, 64, 64, 8, 8}, "full");  // 128 bytes a token
  const AttentionTensors tensors = random_tensors(problem, 1);
  for (const auto& [slots, chunks] : {std::pair{1, 2}, {2, 3}, {3, 4}, {9, 4}}) {
    RunOptions options;
    options.ranks = 4;
    options.slots = slots;
    const RunResult result = stage_named("overlapped_ring").run(tensors.input(problem), options);
    for (const RankStats& rank : result.ranks) {
      EXPECT_EQ(rank.peak_kv_bytes, chunks * 16 * 128) << slots;
      EXPECT_EQ(rank.sent_bytes, 3 * 16 * 128) << slots;
    }
  }
}

TEST(SlotsExampleTest, no_slot_at_all_is_a_usage_error) {
  const Problem problem = make_problem({1, 1, 1, 4, 4, 2, 2}, "full");
  const AttentionTensors tensors = random_tensors(problem, 1);
  RunOptions options;
  options.ranks = 2;
  options.slots = 0;
  EXPECT_THROW(stage_named("overlapped_ring").run(tensors.input(problem), options), Error);
}

TEST(OverlappedCausalRingTest, skipped_chunks_are_passed_on_all_the_same) {
  const Problem problem = make_problem({1, 1, 1, 32, 32, 2, 2}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 3);
  RunOptions options;
  options.ranks = 8;
  const RunResult result =
      stage_named("overlapped_causal_ring").run(tensors.input(problem), options);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(result.ranks[rank].visits.size(), rank + 1);  // the others are in its future
    EXPECT_EQ(result.ranks[rank].sent_messages, 7 * 3);
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
