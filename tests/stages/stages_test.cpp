// Every stage against the reference, over shapes, masks, layouts, dtypes and transports.
#include <cmath>
#include <limits>
#include <set>

#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(All, StageTest, every_stage(), stage_name);

TEST_P(StageTest, equals_the_reference_on_random_problems) {
  RandomRuns runs(GetParam() + 1);
  for (int round = 0; round < repetitions(800); ++round) {
    const Shape shape = runs.shape();
    const auto dtype = static_cast<DType>(runs.below(4));
    const Problem problem = make_problem(shape, runs.mask(shape), dtype);
    const RunOptions options = runs.options();
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
}

TEST_P(StageTest, equals_the_reference_for_uneven_chunks_and_relabelled_ranks) {
  RandomRuns runs(GetParam() + 100);
  for (int round = 0; round < repetitions(200); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    RunOptions options = runs.options();
    options.q_layout = runs.uneven_layout(shape.q_tokens, options.ranks);
    options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    if (runs.below(2) == 1) {  // rank r holds what rank r+1 would hold
      std::vector<Positions> parts;
      parts.reserve(static_cast<std::size_t>(options.ranks));
      for (int rank = 0; rank < options.ranks; ++rank) {
        parts.push_back(options.kv_layout->positions((rank + 1) % options.ranks));
      }
      options.kv_layout = Layout::from_parts(parts);
    }
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
}

TEST_P(StageTest, equals_the_reference_under_bit_matrices) {
  RandomRuns runs(GetParam() + 200);
  for (int round = 0; round < repetitions(100); ++round) {
    const Shape shape = runs.shape();
    Problem problem = make_problem(shape, "full");
    std::vector<MaskTerm> terms(runs.below(2) == 1 ? 2 : 1);  // a causal term comes second
    terms.front() = runs.bits(shape);
    problem.mask = Mask(terms).bind(shape.q_tokens, shape.kv_tokens);
    const RunOptions options = runs.options();
    ASSERT_EQ(check(problem, options, runs.seed()), "") << "round " << round;
  }
}

TEST_P(StageTest, lengths_of_zero_and_one_and_more_ranks_than_tokens_work) {
  for (const std::int64_t queries : {0, 1, 2}) {
    for (const std::int64_t keys : {0, 1, 2}) {
      for (const std::int64_t batch : {0, 1}) {
        const Problem problem =
            make_problem({batch, 2, 1, queries, keys, 3, 2}, "causal", DType::f64);
        RunOptions options;
        options.ranks = 9;
        EXPECT_EQ(check(problem, options, 1), "") << describe(problem, options);
      }
    }
  }
}

TEST_P(StageTest, the_largest_and_the_smallest_tiles_work) {
  for (const std::int64_t tile_queries : {1, 70, 1024}) {
    for (const std::int64_t tile_keys : {1, 69, 1024}) {
      const Problem problem = make_problem({1, 2, 2, 70, 70, 5, 3}, "causal");
      RunOptions options;
      options.ranks = 2;
      options.tile_queries = tile_queries;
      options.tile_keys = tile_keys;
      EXPECT_EQ(check(problem, options, 2), "") << describe(problem, options);
    }
  }
}

TEST_P(StageTest, scores_hundreds_of_nats_apart_stay_right) {
  for (const double scale : {30.0, 300.0, -300.0}) {
    Problem problem = make_problem({1, 2, 1, 20, 20, 4, 3}, "causal");
    problem.scale = scale;
    RunOptions options;
    options.ranks = 4;
    options.tile_keys = 3;
    EXPECT_EQ(check(problem, options, 3), "") << scale;
  }
}

TEST_P(StageTest, a_row_that_sees_nothing_gives_zero_and_minus_infinity) {
  const Problem problem = make_problem({1, 1, 1, 6, 3, 2, 2}, "causal");  // rows 0..2 see nothing
  RunOptions options;
  options.ranks = 2;
  const AttentionTensors tensors = random_tensors(problem, 4);
  const RunResult result = stage().run(tensors.input(problem), options);
  for (std::int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(result.output.lse(0, 0, row, 0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(result.output.out(0, 0, row, 0), 0.0);
    EXPECT_EQ(result.output.out(0, 0, row, 1), 0.0);
  }
}

TEST_P(StageTest, a_query_that_is_nan_has_nan_for_its_answer) {
  const Problem problem = make_problem({1, 1, 1, 13, 13, 3, 2}, "full");
  RunOptions options;
  options.ranks = 3;
  options.tile_keys = 4;
  AttentionTensors tensors = random_tensors(problem, 6);
  tensors.q(0, 0, 4, 1) = std::nan("");
  const AttentionOutput got = stage().run(tensors.input(problem), options).output;
  for (std::int64_t row = 0; row < 13; ++row) {
    EXPECT_EQ(std::isnan(got.out(0, 0, row, 0)), row == 4) << row;
    EXPECT_EQ(std::isnan(got.lse(0, 0, row, 0)), row == 4) << row;
  }
}

TEST_P(StageTest, masked_keys_and_values_may_be_nan) {
  const std::int64_t tokens = 13, blind = 9;  // nobody sees keys 9 … 12
  Problem problem = make_problem({1, 2, 1, tokens, tokens, 3, 2}, "full");
  problem.mask = parse_mask("window:inf,0+documents:9,4").bind(tokens, tokens);
  for (const LayoutKind layout :
       {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    RunOptions options;
    options.ranks = 3;
    options.layout = layout;
    options.tile_keys = 4;
    AttentionTensors clean = random_tensors(problem, 5), poisoned = clean;
    for (std::int64_t token = blind; token < tokens; ++token) {
      for (std::int64_t c = 0; c < 3; ++c) poisoned.k(0, 0, token, c) = std::nan("");
      for (std::int64_t c = 0; c < 2; ++c) poisoned.v(0, 0, token, c) = std::nan("");
    }
    const AttentionOutput want = stage().run(clean.input(problem), options).output;
    const AttentionOutput got = stage().run(poisoned.input(problem), options).output;
    for (std::int64_t row = 0; row < blind; ++row) {
      for (std::int64_t head = 0; head < 2; ++head) {
        EXPECT_EQ(got.lse(0, head, row, 0), want.lse(0, head, row, 0));
        EXPECT_EQ(got.out(0, head, row, 0), want.out(0, head, row, 0));
      }
    }
  }
}

TEST_P(StageTest, strided_and_reversed_views_give_the_bits_of_dense_ones) {
  const Problem problem = make_problem({2, 2, 2, 7, 7, 3, 3}, "causal");
  const AttentionTensors dense = random_tensors(problem, 6);
  const Extents e = problem.shape.q();
  Tensor<double> wide({e.channels, e.tokens, e.heads, e.batch * 2}, std::nan(""));  // transposed
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    wide(c, e.tokens - 1 - t, h, 2 * b) = dense.q(b, h, t, c);
  });
  const TensorView<double> w = wide.view();
  const TensorView<const double> reversed{
      &wide(0, e.tokens - 1, 0, 0), e, {2, w.strides.token, -w.strides.head, w.strides.batch}};
  RunOptions options;
  options.ranks = 2;
  const AttentionInput input = dense.input(problem);
  const AttentionOutput want = stage().run(input, options).output;
  const AttentionOutput got = stage().run({problem, reversed, input.k, input.v}, options).output;
  EXPECT_EQ(got.out.values(), want.out.values());
  EXPECT_EQ(got.lse.values(), want.lse.values());
}

TEST_P(StageTest, the_order_of_the_threads_of_a_phase_does_not_change_a_bit) {
  const Problem problem = make_problem({1, 2, 1, 40, 40, 4, 4}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 7);
  RunOptions options;
  options.ranks = 3;
  options.tile_queries = 8;
  options.tile_keys = 8;
  const AttentionOutput first = stage().run(tensors.input(problem), options).output;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    options.thread_order_seed = seed;
    const AttentionOutput again = stage().run(tensors.input(problem), options).output;
    ASSERT_EQ(again.out.values(), first.out.values());
    ASSERT_EQ(again.lse.values(), first.lse.values());
  }
}

TEST_P(StageTest, delays_and_transports_do_not_change_a_bit) {
  const Problem problem = make_problem({1, 2, 1, 23, 23, 4, 4}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 8);
  RunOptions options;
  options.ranks = 5;
  const AttentionOutput first = stage().run(tensors.input(problem), options).output;
  options.transport = TransportKind::simulated;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    options.delay_seed = seed;
    options.rendezvous = seed % 2 == 1;
    const AttentionOutput again = stage().run(tensors.input(problem), options).output;
    ASSERT_EQ(again.out.values(), first.out.values());
    ASSERT_EQ(again.lse.values(), first.lse.values());
  }
}

TEST(StagesTest, merging_promises_one_rescale_for_every_level_of_its_tree) {
  Problem problem;
  problem.shape = {1, 1, 1, 24, 24, 4, 4};
  RunOptions options;
  options.tile_keys = 24;  // of any part: one tile
  for (const auto& [ranks, levels] : {std::pair{1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}}) {
    options.ranks = ranks;
    EXPECT_EQ(stage_named("merge").profile(problem, options).max_rescales, 1 + levels) << ranks;
  }
}

TEST(StagesTest, come_in_order_with_names_of_their_own) {
  ASSERT_GE(all_stages().size(), 16u);
  std::set<std::string> names;
  for (std::size_t index = 0; index < all_stages().size(); ++index) {
    const Stage& stage = all_stages()[index];
    EXPECT_TRUE(stage.costs) << stage.name << ": no closed forms";
    EXPECT_EQ(std::stoul(stage.id), index) << stage.name;
    EXPECT_TRUE(names.insert(stage.name).second) << stage.name;
    EXPECT_NE(std::string(stage.idea), "") << stage.name;
  }
  EXPECT_TRUE(stage_named("causal_ring").skips_empty_blocks);
}

}  // namespace
}  // namespace ringlab::stages::testing
