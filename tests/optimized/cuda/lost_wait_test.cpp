#include "optimized/cuda/lost_wait.h"

#include <gtest/gtest.h>

#include "optimized/cuda/device_types.h"

namespace ringlab::cuda {
namespace {

TEST(LostWait, is_told_by_the_name_that_the_kernel_gives_it_with_block_and_thread) {
  constexpr WaitName kName = "KV empty";
  EXPECT_EQ(name_of_wait(kName.letters()), "KV empty");
  EXPECT_EQ(text_of({kName.letters(), std::uint64_t{131} << 32 | 383}),
            "the wait for \"KV empty\" of block 131, thread 383 never ended");
}

TEST(LostWait, is_nothing_where_no_kernel_gave_one_up) { EXPECT_EQ(text_of({}), ""); }

}  // namespace
}  // namespace ringlab::cuda
