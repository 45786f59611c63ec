// What the stages with gradients promise: gradients, whatever the ranks, layouts and chunks.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "stages/common/stage.h"
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

const Stage& backward() { return stage_named("backward"); }

AttentionInput with_dout(AttentionInput input, const Tensor<double>& dout) {
  input.dout = dout.view();
  return input;
}

/// Any numbers in the extents of out: those of v, of as many heads and tokens.
Tensor<double> random_dout(const Problem& problem, std::uint64_t seed) {
  Problem square = problem;
  square.shape.kv_heads = square.shape.q_heads;
  square.shape.kv_tokens = square.shape.q_tokens;
  square.mask = Mask().bind(square.shape.q_tokens, square.shape.q_tokens);
  return random_tensors(square, seed).v;
}

/// Empty, or which gradient of the stage is wrong.
std::string check_gradients(const Stage& stage, const AttentionInput& input,
                            const RunOptions& options) {
  const RunResult run = stage.run(input, options);
  if (!run.gradients) return "there are no gradients";
  if (run.leftover_messages != 0) return "messages were left over";
  const ExactBackward exact = exact_backward(input, *input.dout);
  const BackwardTolerance allowed =
      backward_tolerance(input, *input.dout, exact, stage.profile(input.problem, options));
  Report report;
  report.tensors = {compare("dq", run.gradients->dq.view(), exact.dq.view(), allowed.dq.view()),
                    compare("dk", run.gradients->dk.view(), exact.dk.view(), allowed.dk.view()),
                    compare("dv", run.gradients->dv.view(), exact.dv.view(), allowed.dv.view())};
  return report.passed() ? "" : report.summary();
}

/// Of all stages that have gradients.
std::string check_gradients(const AttentionInput& input, const RunOptions& options) {
  std::string wrong;
  for (const Stage& stage : all_stages()) {
    if (stage.backward) wrong += check_gradients(stage, input, options);
  }
  return wrong;
}

TEST(BackwardTest, gradients_equal_the_exact_ones_on_random_problems) {
  RandomRuns runs(10);
  for (int round = 0; round < repetitions(300); ++round) {
    const Shape shape = runs.shape();
    const Problem problem =
        make_problem(shape, runs.mask(shape), static_cast<DType>(runs.below(4)));
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    const Tensor<double> dout = random_dout(problem, runs.seed());
    const RunOptions options = runs.options();
    ASSERT_EQ(check_gradients(with_dout(tensors.input(problem), dout), options), "")
        << describe(problem, options);
  }
}

TEST(BackwardTest, uneven_and_empty_chunks_get_their_own_gradients) {
  RandomRuns runs(11);
  for (int round = 0; round < repetitions(100); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    RunOptions options = runs.options();
    options.q_layout = runs.uneven_layout(shape.q_tokens, options.ranks);
    options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    const Tensor<double> dout = random_dout(problem, runs.seed());
    ASSERT_EQ(check_gradients(with_dout(tensors.input(problem), dout), options), "")
        << describe(problem, options);
  }
}

TEST(BackwardTest, the_output_is_the_same_with_and_without_gradients) {
  const Problem problem = make_problem({2, 4, 2, 17, 17, 3, 5}, "causal");
  const AttentionTensors tensors = random_tensors(problem, 3);
  const Tensor<double> dout = random_dout(problem, 4);
  RunOptions options;
  options.ranks = 3;
  const RunResult plain = backward().run(tensors.input(problem), options);
  const RunResult both = backward().run(with_dout(tensors.input(problem), dout), options);
  EXPECT_FALSE(plain.gradients);
  EXPECT_TRUE(both.gradients);
  EXPECT_EQ(plain.output.out.values(), both.output.out.values());
  EXPECT_EQ(plain.output.lse.values(), both.output.lse.values());
}

TEST(BackwardTest, the_second_trip_sends_kv_once_more_and_the_sums_all_the_way_home) {
  const Problem problem = make_problem({1, 2, 2, 16, 16, 3, 5}, "full", DType::bf16);
  const AttentionTensors tensors = random_tensors(problem, 5);
  const Tensor<double> dout = random_dout(problem, 6);
  RunOptions options;
  options.ranks = 4;
  const std::int64_t chunk = 4 * 2 * (3 + 5);  // elements of K and V
  for (const RankStats& rank :
       backward().run(with_dout(tensors.input(problem), dout), options).ranks) {
    EXPECT_EQ(rank.sent_bytes, 2 * 3 * chunk * 2 + 4 * chunk * 4);
    EXPECT_EQ(rank.sent_messages, 2 * 3 * 2 + 4 * 2);
  }
}

TEST(BackwardTest, a_dout_of_another_shape_is_an_input_error) {
  const Problem problem = make_problem({1, 1, 1, 4, 4, 2, 2}, "full");
  const AttentionTensors tensors = random_tensors(problem, 7);
  const Tensor<double> dout({1, 1, 3, 2});
  EXPECT_THROW(backward().run(with_dout(tensors.input(problem), dout), {}), Error);
}

TEST(BackwardTest, a_stage_without_gradients_leaves_them_out_or_unwritten_but_never_as_numbers) {
  const Problem problem = make_problem({1, 1, 1, 4, 4, 2, 2}, "full");
  const AttentionTensors tensors = random_tensors(problem, 8);
  const Tensor<double> dout = random_dout(problem, 9);
  const RunResult run = all_stages().front().run(with_dout(tensors.input(problem), dout), {});
  if (!run.gradients) return;
  for (const double x : run.gradients->dk.values()) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace ringlab::stages::testing
