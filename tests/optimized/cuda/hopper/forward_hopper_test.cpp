// The Hopper kernel, unchanged, on the emulated GPU.
#include <gtest/gtest.h>

#include "optimized/cuda/kernels.h"
#include "tests/optimized/cuda/cuda_kernels.h"

namespace ringlab {

std::vector<BlockKernel> every_block_kernel() {
  using namespace cuda;
  return {with_forward_hopper_cases(forward_hopper_kernel<Half>(&emulated_forward_hopper<Half>)),
          with_forward_hopper_cases(
              forward_hopper_kernel<BFloat16>(&emulated_forward_hopper<BFloat16>))};
}

namespace cuda {
namespace {

TEST(HopperShapes, name_what_the_kernel_does_not_take) {
  const BlockShape good{.queries = 1, .keys = 1, .head_dim = 8, .v_dim = 256};
  EXPECT_EQ(why_not_hopper(good, 1, 90), "");
  EXPECT_EQ(why_not_hopper(good, 1, 100), "compute capability 10.0");
  EXPECT_EQ(why_not_hopper(good, 0, 90), "scale = 0.000000");
  EXPECT_EQ(why_not_hopper(good, -2, 90), "scale = -2.000000");
  BlockShape bad = good;
  bad.head_dim = 12;
  EXPECT_EQ(why_not_hopper(bad, 1, 90), "head_dim = 12");
  bad = good;
  bad.q_heads = 3;
  bad.kv_heads = 2;
  EXPECT_EQ(why_not_hopper(bad, 1, 90), "3 query heads for 2 K/V heads");
  bad = good;
  bad.queries = 1 << 30;
  bad.batch = 1000;
  EXPECT_EQ(why_not_hopper(bad, 1, 90), "8388608 tiles of queries for 1000 heads");
}

}  // namespace
}  // namespace cuda
}  // namespace ringlab
