// Goals that compare the device with a peer: what becomes of them with and without one.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "optimized/bench/gpu/gpu_comparisons.h"
#include "tests/optimized/bench/fake_gpu.h"
#include "tests/temporary_folder.h"

namespace ringlab::bench {
namespace {

TEST(GpuMatches, without_peers_goals_are_skipped_and_throughputs_are_there_all_the_same) {
  FakeGpu gpu;
  for (const GoalOutcome& one : measure_on(gpu, "G1,G2,G3,G4,G5")) {
    EXPECT_EQ(one.verdict(), GoalVerdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
    EXPECT_NEAR(beside(one, "TFLOP/s"), 500, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "share of matrix peak"), 500.0 / 800, 1e-12) << one.goal.id;
    EXPECT_NEAR(beside(one, "matrix peak, TFLOP/s"), 800, 1e-9) << one.goal.id;
    EXPECT_EQ(one.subject, "fake kernel");
  }
}

/// A Python with PyTorch that answers every request so, without running what it is to run.
std::vector<GoalOutcome> measure_against(const std::string& answer, FakeGpu& gpu,
                                         const std::string& goals) {
  const TemporaryFolder folder;
  const std::filesystem::path python = folder / "python";
  std::ofstream(python) << "#!/bin/sh\necho ready Fake\nwhile read line; do sleep 0.02; echo "
                        << answer << "; done\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  Plan plan = plan_of(goals);
  plan.torch_python = python;
  return measure(
      plan, [](double, const std::string&) {}, gpu_families(bench));
}

TEST(GpuMatches, a_peer_that_answers_is_compared_with_ours_on_the_same_problem) {
  FakeGpu gpu;
  const auto outcomes = measure_against("0.01", gpu, "G1.t4k,G6.share");
  ASSERT_EQ(outcomes.size(), 2u);
  GpuCase one{.tokens = 4096, .q_heads = 16, .kv_heads = 2};
  ASSERT_TRUE(outcomes[0].value) << outcomes[0].reason;
  EXPECT_NEAR(outcomes[0].value->median, 0.01 * 500e12 / one.flops(), 1e-9);
  EXPECT_NEAR(beside(outcomes[0], "peer, TFLOP/s"), one.flops() / 0.01 * 1e-12, 1e-9);
  one.tokens = 16384;
  ASSERT_TRUE(outcomes[1].value) << outcomes[1].reason;
  EXPECT_NEAR(outcomes[1].value->median, 0.01 * 500e12 / one.flops(), 1e-9);
}

TEST(GpuMatches, wrong_results_have_no_figures) {
  FakeGpu gpu;
  gpu.wrong = "o at (0, 0, 0, 0)";
  const auto outcomes = measure_against("0.01", gpu, "G1.t4k");
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].verdict(), GoalVerdict::skipped);
  EXPECT_EQ(outcomes[0].reason, "wrong results: o at (0, 0, 0, 0)");
  EXPECT_TRUE(outcomes[0].beside.empty());

  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  const Ladder ladder = measure_ladder(bench, {}, {.rounds = 3});
  for (const LadderRung& rung : ladder.rungs) {
    EXPECT_EQ(rung.failure.empty(), rung.name != "aside") << rung.name;
  }
}

/// cuDNN itself comes before PyTorch's, which has to be asked for other back ends.
TEST(GpuMatches, cudnn_is_asked_directly_where_it_is_there) {
  FakeGpu gpu;
  gpu.cudnn_flops_per_s = 400e12;
  for (const GoalOutcome& one : measure_on(gpu, "G1,G2,G4,G5")) {
    ASSERT_TRUE(one.value) << one.goal.id << ": " << one.reason;
    EXPECT_NEAR(one.value->median, 500.0 / 400, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "peer, TFLOP/s"), 400, 1e-9) << one.goal.id;
  }
  for (const GoalOutcome& one : measure_on(gpu, "G3")) {
    EXPECT_EQ(one.verdict(), GoalVerdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
    EXPECT_EQ(one.reason.find("cuDNN"), std::string::npos) << one.reason;
  }
}

TEST(GpuMatches, where_cudnn_can_be_had_in_no_way_both_reasons_are_named) {
  FakeGpu gpu;
  for (const GoalOutcome& one : measure_on(gpu, "G1,G5")) {
    EXPECT_EQ(one.verdict(), GoalVerdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("expected cuDNN"), std::string::npos) << one.reason;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
  }
  const auto outcomes = measure_against("cannot do it", gpu, "G5");
  EXPECT_NE(outcomes[0].reason.find("expected cuDNN"), std::string::npos) << outcomes[0].reason;
  EXPECT_NE(outcomes[0].reason.find("cannot do it"), std::string::npos) << outcomes[0].reason;
}

TEST(GpuMatches, a_peer_that_cannot_says_why_and_ours_is_measured) {
  FakeGpu gpu;
  const auto outcomes = measure_against("cannot do it", gpu, "G2.t8k");
  EXPECT_EQ(outcomes[0].verdict(), GoalVerdict::skipped);
  EXPECT_NE(outcomes[0].reason.find("cannot do it"), std::string::npos) << outcomes[0].reason;
  EXPECT_NEAR(beside(outcomes[0], "TFLOP/s"), 500, 1e-9);
}

TEST(GpuMatches, a_peer_faster_than_matrix_products_is_not_believed) {
  FakeGpu gpu;
  const auto outcomes = measure_against("0.000001", gpu, "G1.t32k");
  EXPECT_EQ(outcomes[0].verdict(), GoalVerdict::skipped) << outcomes[0].value->median;
}

TEST(GpuMatches, without_a_matrix_product_throughputs_have_no_share) {
  FakeGpu gpu;
  gpu.has_product = false;
  for (const GoalOutcome& one : measure_on(gpu, "G2")) {
    EXPECT_NEAR(beside(one, "TFLOP/s"), 500, 1e-9) << one.goal.id;
    EXPECT_TRUE(std::isnan(beside(one, "share of matrix peak"))) << one.goal.id;
  }
}

TEST(GpuMatches, a_case_that_is_out_of_memory_costs_its_own_goal_only) {
  FakeGpu gpu;
  gpu.most_tokens = 16384;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G1");
  EXPECT_NE(outcomes.back().reason.find("memory"), std::string::npos);
  EXPECT_TRUE(outcomes.back().beside.empty());
  EXPECT_FALSE(outcomes.front().beside.empty());
}

TEST(GpuMatches, the_file_of_the_kernel_is_counted) {
  FakeGpu gpu;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G6");
  ASSERT_EQ(outcomes.size(), 2u);
  ASSERT_TRUE(outcomes[0].value);
  EXPECT_GT(outcomes[0].value->median, 100);
  EXPECT_NEAR(beside(outcomes[1], "TFLOP/s"), 500, 1e-9);
}

}  // namespace
}  // namespace ringlab::bench
