// What is measured on a device beside goals: versions of the kernel, and kernels under copies.
#include "optimized/bench/gpu/gpu_comparisons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/optimized/bench/fake_gpu.h"

namespace ringlab::bench {
namespace {

TEST(Ladder, has_every_pass_width_and_mask) {
  std::set<std::pair<Pass, std::string>> cases;
  for (const GpuCase& one : ladder_cases(false)) cases.insert({one.pass, one.text()});
  EXPECT_EQ(cases.size(), 8u);
  EXPECT_TRUE(cases.contains({Pass::backward, "causal, 16k tokens, head_dim 64"}));
}

TEST(Ladder, compares_every_version_with_the_last_step) {
  FakeGpu gpu;
  const GpuCase one = ladder_cases(true)[0];
  const Ladder ladder = measure_ladder({.gpu = gpu, .warm_up_s = 0}, one, {.rounds = 3});
  ASSERT_EQ(ladder.rungs.size(), 3u);
  EXPECT_EQ(ladder.rungs[0].name, "half");
  EXPECT_NEAR(ladder.rungs[0].speed.median, 0.5, 1e-12);
  EXPECT_NEAR(ladder.rungs[0].flops_per_s.median, 250e12, 1);
  EXPECT_EQ(ladder.rungs[1].name, "whole") << "steps come first";
  EXPECT_NEAR(ladder.rungs[1].speed.median, 1, 1e-12);
  EXPECT_EQ(ladder.rungs[2].name, "aside");
  EXPECT_FALSE(ladder.rungs[2].is_step);
  EXPECT_NEAR(ladder.rungs[2].speed.median, 0.8, 1e-12);
}

TEST(Ladder, what_the_device_cannot_do_is_an_environment_error) {
  FakeGpu gpu;
  gpu.most_tokens = 1;
  try {
    measure_ladder({.gpu = gpu, .warm_up_s = 0}, ladder_cases(true)[0], {.rounds = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
  }
}

TEST(Overlap, has_copy_engines_and_nccl_with_multiprocessors_left_free) {
  std::set<std::pair<std::string, std::string>> options;
  for (const OverlapOption& one : overlap_options())
    options.insert({copies_text(one), text_of(one.grid)});
  EXPECT_EQ(options.size(), 11u);
  EXPECT_TRUE(options.contains({"NCCL, to itself, 2 blocks", "stays, 8 left free"}));
  EXPECT_TRUE(options.contains({"NCCL, to itself", "stays, 16 left free"}));
}

TEST(Overlap, is_the_speed_of_kernels_and_copies_beside_each_other) {
  FakeGpu gpu;
  gpu.slowdown_under_copies = 1.25;
  const GpuCase attention{.tokens = 1024};
  const Overlap found = measure_overlap(
      {.gpu = gpu, .warm_up_s = 0}, {HopFrom::nccl, {.left_free = 8}, 4}, attention, {.rounds = 3});
  EXPECT_EQ(found.failure, "");
  EXPECT_NEAR(found.kernel_alone.median, 1, 1e-12);
  EXPECT_NEAR(found.kernel_under_copies.median, 0.8, 1e-12);
  EXPECT_NEAR(found.copies_alone_bytes_per_s.median, 50e9, 1);
  EXPECT_NEAR(found.copies_under_kernel_bytes_per_s.median, 50e9, 1);
  EXPECT_TRUE(std::ranges::any_of(gpu.hops_asked, [](const HopCase& one) {
    return one.grid.left_free == 8 && one.from == HopFrom::nccl && one.nccl_blocks == 4 &&
           one.part == HopPart::kernel_of_both;
  }));
}

TEST(Overlap, what_cannot_be_had_says_why) {
  FakeGpu gpu;
  gpu.has_nccl = false;
  const Overlap found =
      measure_overlap({.gpu = gpu, .warm_up_s = 0}, {HopFrom::nccl, {.stays = false}},
                      {.tokens = 1024}, {.rounds = 3});
  EXPECT_NE(found.failure.find("NCCL"), std::string::npos) << found.failure;
}

}  // namespace
}  // namespace ringlab::bench
