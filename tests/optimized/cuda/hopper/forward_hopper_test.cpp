// The Hopper kernel, unchanged, on the emulated GPU, against the exact reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "optimized/cuda/kernels.h"
#include "reference/core/error.h"
#include "tests/optimized/cuda/hopper/hopper_trial.h"

namespace ringlab::cuda {
namespace {

template <class Element>
AttentionOutput run(const RingTrial& trial, const EmulatedGrid& grid) {
  return run_hopper<Element>(trial, &emulated_forward_hopper<Element>, grid);
}

template <class Element>
class ForwardHopper : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ForwardHopper, Elements);

#include "tests/optimized/cuda/hopper/forward_hopper_trials-inl.h"

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
}  // namespace ringlab::cuda
