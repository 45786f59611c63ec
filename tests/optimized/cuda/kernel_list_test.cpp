#include "optimized/cuda/kernel_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ringlab::cuda {
namespace {

const int kOne = 1, kOther = 2;
const bool kIsListed = list_kernel(&kOne) && list_kernel(&kOther);

TEST(KernelList, has_from_the_beginning_what_a_constant_added) {
  EXPECT_TRUE(kIsListed);
  EXPECT_EQ(std::ranges::count(listed_kernels(), static_cast<const void*>(&kOne)), 1);
  EXPECT_EQ(std::ranges::count(listed_kernels(), static_cast<const void*>(&kOther)), 1);
}

}  // namespace
}  // namespace ringlab::cuda
