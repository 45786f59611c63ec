// The Hopper backward kernel, unchanged, and its versions on the emulated GPU.
#include <gtest/gtest.h>

#include <limits>

#include "optimized/cuda/kernels.h"
#include "tests/optimized/cuda/cuda_kernels.h"
#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"

namespace ringlab {
namespace cuda {
std::vector<BlockKernel> emulated_backward_versions();  // backward_hopper_ladder_test.cpp
}

std::vector<BlockKernel> every_block_kernel() {
  using namespace cuda;
  std::vector<BlockKernel> all = emulated_backward_versions();
  all.push_back(with_backward_hopper_cases(backward_kernel<Half>(&emulated_backward_hopper<Half>)));
  all.push_back(
      with_backward_hopper_cases(backward_kernel<BFloat16>(&emulated_backward_hopper<BFloat16>)));
  return all;
}

namespace cuda {
namespace {

TEST(BackwardHopperShapes, name_what_the_kernel_does_not_take) {
  const BlockShape good{.queries = 1, .keys = 1, .head_dim = 8, .v_dim = 128};
  EXPECT_EQ(why_not_backward_hopper(good, 90), "");
  EXPECT_EQ(why_not_backward_hopper(good, 80), "compute capability 8.0");
  BlockShape bad = good;
  bad.head_dim = 136;
  EXPECT_EQ(why_not_backward_hopper(bad, 90), "head_dim = 136, v_dim = 128");
  bad = good;
  bad.head_dim = 12;
  EXPECT_EQ(why_not_backward_hopper(bad, 90), "head_dim = 12");
  bad = good;
  bad.queries = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(why_not_backward_hopper(bad, 90), "2147483647 queries, 1 keys");
}

}  // namespace
}  // namespace cuda
}  // namespace ringlab
