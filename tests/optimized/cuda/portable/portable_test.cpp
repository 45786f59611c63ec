// The portable kernels on the emulated GPU, against the exact reference.
#include "optimized/cuda/portable/portable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "optimized/cuda/kernel_profile.h"
#include "reference/core/error.h"
#include "tests/optimized/cuda/expect_same_bits.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

constexpr bool kOrdersAreDrawn = true;  // of threads, from the seed

template <class Element>
PortableKernels<Element> kernels_here() {
  return portable_kernels<Element>();
}

template <class Element>
class Portable : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Portable, Elements);

#include "tests/optimized/cuda/portable/portable_trials-inl.h"

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
}  // namespace ringlab::cuda
