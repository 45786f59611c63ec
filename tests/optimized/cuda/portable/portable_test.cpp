// The portable kernels on the emulated GPU.
#include "optimized/cuda/portable/portable.h"

#include <gtest/gtest.h>

#include "optimized/cuda/kernel_profile.h"
#include "reference/core/error.h"
#include "tests/optimized/cuda/cuda_kernels.h"

namespace ringlab {

std::vector<BlockKernel> every_block_kernel() {
  using namespace cuda;
  return {with_portable_cases(portable_kernel(portable_kernels<Half>())),
          with_portable_cases(portable_kernel(portable_kernels<BFloat16>()))};
}

namespace cuda {
namespace {

TEST(PortableShapes, names_what_the_kernels_do_not_take) {
  const BlockShape good{.queries = 1, .keys = 1, .head_dim = 8, .v_dim = 256};
  EXPECT_EQ(why_not_portable(good), "");
  BlockShape bad = good;
  bad.head_dim = 12;
  EXPECT_EQ(why_not_portable(bad), "head_dim = 12");
  bad = good;
  bad.v_dim = 264;
  EXPECT_EQ(why_not_portable(bad), "v_dim = 264");
  bad = good;
  bad.q_heads = 3;
  bad.kv_heads = 2;
  EXPECT_EQ(why_not_portable(bad), "3 query heads for 2 K/V heads");
}

TEST(KernelProfile, is_of_the_types_that_tensor_cores_take) {
  EXPECT_EQ(kernel_profile(DType::bf16, 3).u_probability, 0x1p-8);
  EXPECT_EQ(kernel_profile(DType::f16, 3).u_probability, 0x1p-11);
  EXPECT_THROW(kernel_profile(DType::f32, 3), Error);
}

}  // namespace
}  // namespace cuda
}  // namespace ringlab
