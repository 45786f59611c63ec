// What a rank sends and holds, measured, against closed forms: integers, no tolerance.
#include "stages/common/costs.h"

#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

class CostsTest : public StageTest {};
INSTANTIATE_TEST_SUITE_P(All, CostsTest, every_stage(), stage_name);

TEST_P(CostsTest, measured_traffic_and_peak_kv_equal_the_closed_forms) {
  RandomRuns runs(GetParam() + 300);
  for (int round = 0; round < repetitions(150); ++round) {
    const Shape shape = runs.shape();
    const auto dtype = static_cast<DType>(runs.below(4));
    const Problem problem =
        make_problem(shape, runs.below(2) == 1 ? runs.mask(shape) : "causal", dtype);
    RunOptions options = runs.options();
    if (runs.below(2) == 1) {
      options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    }
    const RunResult result =
        stage().run(random_tensors(problem, runs.seed()).input(problem), options);
    std::int64_t sent = 0, received = 0;
    for (int rank = 0; rank < options.ranks; ++rank) {
      const RankStats& stats = result.ranks[static_cast<std::size_t>(rank)];
      const StatedCosts costs = stage().costs(problem, options, rank);
      ASSERT_EQ(stats.sent_bytes, costs.sent_bytes) << describe(problem, options);
      ASSERT_EQ(stats.sent_messages, costs.sent_messages) << describe(problem, options);
      ASSERT_EQ(stats.peak_kv_bytes, costs.peak_kv_bytes) << describe(problem, options);
      ASSERT_EQ(stats.exchanges, costs.exchanges.value_or(stats.exchanges))
          << describe(problem, options);
      ASSERT_EQ(stats.node_messages, costs.node_messages.value_or(stats.node_messages))
          << describe(problem, options) << ", nodes of " << options.node_ranks;
      const std::int64_t shard =
          make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank).size() *
          kv_bytes_per_token(problem);  // an input: not allocated
      const bool reads_the_shard = stage().prefetches || !stage().ring_traffic;
      ASSERT_LE(stats.peak_kv_bytes, stats.peak_bytes + (reads_the_shard ? shard : 0));
      sent += stats.sent_bytes;
      received += stats.received_bytes;
    }
    ASSERT_EQ(sent, received);
  }
}

TEST_P(CostsTest, visits_cover_every_chunk_once_with_all_allowed_pairs) {
  if (stage().queries_travel) GTEST_SKIP() << "computes rows of others";
  if (stage().skips_empty_blocks) GTEST_SKIP() << "skips chunks: causal_ring_test.cpp has its law";
  const Problem problem = make_problem({1, 1, 1, 17, 23, 2, 2}, "causal");
  RunOptions options;
  options.ranks = 5;
  const RunResult result = stage().run(random_tensors(problem, 1).input(problem), options);
  std::int64_t pairs = 0;
  for (const RankStats& rank : result.ranks) {
    std::vector<int> times(5, 0);
    for (const Visit& visit : rank.visits) {
      ++times[static_cast<std::size_t>(visit.owner)];
      pairs += visit.pairs;
    }
    EXPECT_EQ(times, std::vector<int>(5, 1));
  }
  EXPECT_EQ(pairs, problem.mask.count_all());
}

/// 64 tokens on 4 ranks, f32, 2 K/V heads, d = v_dim = 8: a token's K and V take 128 bytes.
RunResult sixty_four_tokens(const std::string& stage) {
  const Problem problem = make_problem({1, 4, 2, 64, 64, 8, 8}, "full");
  RunOptions options;
  options.ranks = 4;
  return stage_named(stage).run(random_tensors(problem, 1).input(problem), options);
}

TEST(CostsExampleTest, broadcast_holds_all_keys_and_sends_its_chunk_to_three_others) {
  for (const RankStats& rank : sixty_four_tokens("broadcast").ranks) {
    EXPECT_EQ(rank.peak_kv_bytes, 64 * 128);
    EXPECT_EQ(rank.sent_bytes, 3 * 16 * 128);
  }
}

TEST(CostsExampleTest, a_ring_holds_two_chunks_and_sends_the_same_bytes_in_three_hops) {
  for (const RankStats& rank : sixty_four_tokens("ring").ranks) {
    EXPECT_EQ(rank.peak_kv_bytes, 2 * 16 * 128);
    EXPECT_EQ(rank.sent_bytes, 3 * 16 * 128);
    EXPECT_EQ(rank.sent_messages, 3 * 2);
  }
}

TEST(CostsExampleTest, positions_on_the_wire_cost_24_bytes_per_run_and_hop) {
  for (const RankStats& rank : sixty_four_tokens("causal_ring").ranks) {
    EXPECT_EQ(rank.sent_bytes, 3 * (16 * 128 + 24));
  }
}

/// What `stage` counted of one rank; every rank has the same.
RankStats counted(const std::string& stage, int ranks, int node_ranks) {
  const Problem problem = make_problem({1, 1, 1, 60, 60, 2, 2}, "full");
  RunOptions options;
  options.ranks = ranks;
  options.node_ranks = node_ranks;
  const RunResult result =
      stage_named(stage).run(random_tensors(problem, 1).input(problem), options);
  for (const RankStats& rank : result.ranks) {
    EXPECT_EQ(rank.exchanges, result.ranks[0].exchanges);
  }
  return result.ranks[static_cast<std::size_t>(node_ranks - 1)];
}

TEST(CostsExampleTest, two_half_rings_make_half_the_exchanges_and_send_as_many_messages) {
  for (const auto& [ranks, exchanges] : {std::pair{1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 3}}) {
    EXPECT_EQ(counted("bidirectional", ranks, 1).exchanges, exchanges) << ranks;
    EXPECT_EQ(counted("ring", ranks, 1).exchanges, ranks - 1) << ranks;
    EXPECT_EQ(counted("bidirectional", ranks, 1).sent_messages, 2 * (ranks - 1)) << ranks;
  }
}

TEST(CostsExampleTest, rings_of_rings_send_one_chunk_to_each_other_node) {
  for (const auto& [ranks, width] : {std::pair{8, 4}, {6, 2}, {12, 3}}) {
    const int other_nodes = ranks / width - 1;
    EXPECT_EQ(counted("hierarchical", ranks, width).node_messages, 2 * other_nodes) << ranks;
    // The last rank of a node passes everything on to the first one of the next.
    EXPECT_EQ(counted("ring", ranks, width).node_messages, 2 * (ranks - 1)) << ranks;
  }
}

TEST(CostsExampleTest, only_the_first_two_have_an_n_by_n_array) {
  const std::int64_t scores = 4 * 16 * 64 * 4;  // heads, queries of a rank, keys, bytes
  EXPECT_GE(sixty_four_tokens("broadcast").ranks[0].peak_bytes, scores);
  const Problem problem = make_problem({1, 1, 1, 2048, 2048, 2, 2}, "causal");
  RunOptions options;
  options.ranks = 2;
  const AttentionTensors tensors = random_tensors(problem, 1);
  for (const Stage& stage : all_stages()) {
    const bool has_one = stage.name == "attention" || stage.name == "broadcast";
    const RunResult result = stage.run(tensors.input(problem), options);
    EXPECT_EQ(result.ranks[0].peak_bytes > 2048 * 1024 / 8, has_one) << stage.name;
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
