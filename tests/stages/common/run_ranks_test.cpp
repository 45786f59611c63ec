// The harness itself: what it refuses, and what it measures.
#include "stages/common/run_ranks.h"

#include <gtest/gtest.h>

#include "reference/core/shards.h"
#include "stages/common/device_list.h"
#include "stages/common/stage.h"
#include "tests/stages/expected.h"

namespace ringlab::stages::testing {
namespace {

/// Runs stage 01 and returns the error it throws.
Error error_of(const AttentionInput& input, const RunOptions& options) {
  try {
    all_stages()[0].run(input, options);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::usage, {}};
}

const Problem& small_problem() {
  static const Problem problem = make_problem({1, 1, 1, 3, 3, 2, 2}, "full");
  return problem;
}

TEST(RunRanksTest, ranks_and_tiles_out_of_range_are_usage_errors_that_name_the_option) {
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  const AttentionInput input = tensors.input(small_problem());
  RunOptions no_ranks, no_tile, large_tile;
  no_ranks.ranks = 0;
  no_tile.tile_queries = 0;
  large_tile.tile_keys = 1025;
  for (const auto& [options, name] :
       {std::pair(no_ranks, "ranks"), {no_tile, "tile_queries"}, {large_tile, "tile_keys"}}) {
    const Error error = error_of(input, options);
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.parts().where, name);
  }
}

TEST(RunRanksTest, a_tensor_of_another_shape_is_an_input_error_that_names_it) {
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  AttentionInput input = tensors.input(small_problem());
  input.v.extents.tokens = 2;
  const Error error = error_of(input, {});
  EXPECT_EQ(error.kind(), ErrorKind::input);
  EXPECT_EQ(error.parts().where, "v");
}

TEST(RunRanksTest, a_layout_of_another_length_is_an_input_error) {
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  RunOptions options;
  options.ranks = 2;
  options.q_layout = Layout(LayoutKind::contiguous, 4, 2);
  EXPECT_EQ(error_of(tensors.input(small_problem()), options).kind(), ErrorKind::input);
}

TEST(RunRanksTest, the_cuda_device_without_a_gpu_is_an_environment_error) {
  if (cuda_status().devices > 0) GTEST_SKIP() << "this machine has a GPU";
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  RunOptions options;
  options.device = DeviceKind::cuda;
  const Error error = error_of(tensors.input(small_problem()), options);
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  EXPECT_EQ(error.exit_code(), 4);
  // With CUDA but no driver the driver is named behind it.
  EXPECT_TRUE(error.parts().where.starts_with("device cuda")) << error.parts().where;
}

std::string refusal_of(const CudaStatus& status) {
  try {
    require_cuda(status);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 4);
    return error.what();
  }
  return "";
}

TEST(RunRanksTest, a_gpu_that_the_kernels_were_not_compiled_for_is_named_with_what_they_were_for) {
  CudaStatus status{.compiled_in = true, .devices = 1, .text = "Old GPU"};
  status.compiled_for = "8.0, 9.0";
  EXPECT_EQ(refusal_of(status), "");
  status.unfit = "Old GPU, compute capability 7.0";
  const std::string refusal = refusal_of(status);
  EXPECT_NE(refusal.find("Old GPU, compute capability 7.0"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("(compute capability 8.0, 9.0)"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("CMAKE_CUDA_ARCHITECTURES"), std::string::npos) << refusal;
}

TEST(RunRanksTest, a_row_that_the_body_does_not_write_is_nan) {
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  const RunResult result =
      run_ranks(tensors.input(small_problem()), {}, []<class Element>(RankProblem<Element>&) {});
  for (const double x : result.output.out.values()) EXPECT_TRUE(x != x);
  for (const double x : result.output.lse.values()) EXPECT_TRUE(x != x);
}

TEST(RunRanksTest, a_body_compiled_for_f32_alone_refuses_other_dtypes) {
  const Problem problem = make_problem({1, 1, 1, 3, 3, 2, 2}, "full", DType::bf16);
  const AttentionTensors tensors = random_tensors(problem, 1);
  EXPECT_THROW(
      run_ranks<float>(tensors.input(problem), {}, []<class Element>(RankProblem<Element>&) {}),
      Error);
}

TEST(RunRanksTest, an_error_in_a_body_comes_out_with_its_kind) {
  const AttentionTensors tensors = random_tensors(small_problem(), 1);
  RunOptions options;
  options.ranks = 3;
  const auto body = []<class Element>(RankProblem<Element>& r) {
    if (r.rank() == 1) {
      throw_input_error({.where = "body", .expected = "", .actual = "x"});
    }
    std::byte byte{};
    if (r.rank() == 0) r.network.wait(r.network.post_receive(1, 0, {&byte, 1}));
  };
  try {
    run_ranks<float>(tensors.input(small_problem()), options, body);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
  }
}

TEST(ShardsTest, cutting_and_putting_together_changes_nothing) {
  const Problem problem = make_problem({2, 3, 3, 11, 11, 2, 2}, "full");
  const AttentionTensors tensors = random_tensors(problem, 2);
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    const Layout layout(kind, 11, 4);
    Tensor<double> whole(tensors.q.extents());
    for (int rank = 0; rank < 4; ++rank) {
      const Tensor<float> shard = shard_of<float>(tensors.q.view(), layout.positions(rank));
      EXPECT_EQ(shard.extents().tokens, layout.positions(rank).size());
      unshard(shard, layout.positions(rank), whole);
    }
    EXPECT_EQ(whole.values(), tensors.q.values());
  }
}

TEST(ShardsTest, rows_that_a_tensor_does_not_have_are_a_usage_error) {
  Tensor<float> tensor({2, 3, 5, 2});
  EXPECT_EQ(rows_of(tensor.view(), 5, 3, 2).data(), &tensor(1, 2, 3, 0));
  EXPECT_EQ(rows_of(tensor.view(), 0, 5, 0).size(), 0u);
  EXPECT_THROW(rows_of(tensor.view(), 0, 4, 2), Error);
  EXPECT_THROW(rows_of(tensor.view(), 0, -1, 2), Error);
  EXPECT_THROW(rows_of(tensor.view(), 6, 0, 1), Error);
}

}  // namespace
}  // namespace ringlab::stages::testing
