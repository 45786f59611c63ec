#include "reference/model/kernel_speeds.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/model/machine.h"

namespace ringlab::model {
namespace {

KernelSpeed full(DType dtype, std::int64_t head_dim, std::int64_t tokens, double flops) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .tokens = tokens,
          .forward_flops = flops,
          .backward_flops = flops / 2};
}

TEST(SpeedCurve, is_straight_over_the_logarithm_and_level_beyond_its_ends) {
  SpeedCurve curve;
  curve.add(8192, 300);
  curve.add(2048, 100);
  EXPECT_EQ(curve.at(4096), 200);
  EXPECT_EQ(curve.at(2048), 100);
  EXPECT_EQ(curve.at(1), 100);
  EXPECT_EQ(curve.at(1e9), 300);
}

TEST(KernelSpeeds, lie_between_the_nearest_numbers_of_channels_and_are_level_beyond_them) {
  const std::vector<KernelSpeed> all = {
      full(DType::bf16, 64, 0, 100), full(DType::bf16, 128, 0, 300), full(DType::f32, 128, 0, 10)};
  const auto forward = [&](DType dtype, std::int64_t head_dim) {
    return speeds_at(all, dtype, head_dim).front().forward_flops;
  };
  EXPECT_EQ(forward(DType::bf16, 96), 200);
  EXPECT_EQ(forward(DType::f16, 64), 100);
  EXPECT_EQ(forward(DType::bf16, 32), 100);
  EXPECT_EQ(forward(DType::bf16, 256), 300);
  EXPECT_EQ(forward(DType::f32, 64), 10);
  EXPECT_TRUE(speeds_at(all, DType::f64, 64).empty());
}

TEST(BlockSpeeds, of_a_long_block_are_cut_along_its_diagonal_only) {
  std::vector<KernelSpeed> speeds = {full(DType::bf16, 128, 1000, 400),
                                     full(DType::bf16, 128, 1000, 200)};
  speeds[1].causal = true;
  const BlockSpeeds blocks = block_speeds(speeds, 128);
  EXPECT_EQ(blocks.flops(Pass::forward, 1000, false), 400);
  EXPECT_EQ(blocks.flops(Pass::forward, 500, true), 200);
  EXPECT_EQ(blocks.flops(Pass::backward, 1000, true), 100);
  // A quarter of the way at 200, the rest at 400.
  EXPECT_DOUBLE_EQ(blocks.flops(Pass::forward, 4000, true), 1 / (0.25 / 200 + 0.75 / 400));
  EXPECT_TRUE(block_speeds(speeds, 64).empty()) << "nothing is known of other channels";
}

TEST(Machines, are_as_fast_as_the_type_and_the_channels_let_them_be) {
  const Machine& h100 = find_machine("h100");
  Problem problem;
  const auto forward = [&](DType dtype, std::int64_t head_dim) {
    problem.dtype = dtype;
    problem.shape.head_dim = head_dim;
    return suited_to(h100, problem).forward_flops / 1e12;
  };
  EXPECT_EQ(forward(DType::bf16, 128), 648);
  EXPECT_EQ(forward(DType::f16, 64), 497);
  EXPECT_EQ(forward(DType::bf16, 192), (648 + 756) / 2.0);
  EXPECT_LT(forward(DType::f64, 128), 67) << "more than its peak";
  problem.dtype = DType::f64;
  EXPECT_THROW(suited_to(find_machine("h800"), problem), Error);
}

TEST(Machines, are_expected_to_be_slower_than_they_are_ideally) {
  Problem problem;
  problem.dtype = DType::bf16;
  problem.shape.head_dim = 128;
  const Machine h800 = suited_to(find_machine("h800"), problem);
  const Machine expected = as_expected(h800, problem).value();
  EXPECT_EQ(expected.inside.bytes_per_s, 0.8 * h800.inside.bytes_per_s);
  EXPECT_EQ(expected.merge_bytes, 60);
  EXPECT_EQ(expected.flops(Pass::forward, 8192, true), 325e12);
  EXPECT_EQ(h800.flops(Pass::forward, 8192, true), 370e12);
  EXPECT_FALSE(as_expected(find_machine("laptop"), problem));
}

}  // namespace
}  // namespace ringlab::model
