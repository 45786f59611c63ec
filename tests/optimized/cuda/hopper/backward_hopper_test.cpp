// The Hopper backward kernel, unchanged, on the emulated GPU, against the exact reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "optimized/cuda/kernels.h"
#include "reference/attention/exact.h"
#include "tests/optimized/cuda/expect_same_bits.h"
#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

constexpr bool kOrdersAreDrawn = true;  // of threads, from the seed

template <class Element>
auto backward_here() {
  return &emulated_backward_hopper<Element>;
}

template <class Element>
class BackwardHopper : public testing::Test {};
using BackwardElements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BackwardHopper, BackwardElements);

#include "tests/optimized/cuda/hopper/backward_hopper_trials-inl.h"

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
}  // namespace ringlab::cuda
