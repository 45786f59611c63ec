#include "optimized/cuda/stuck_device.h"

#include <gtest/gtest.h>

#include <limits>

#include "reference/core/machine/machine_error.h"

namespace ringlab::cuda {
namespace {

std::string text_of(std::size_t unended) {
  try {
    throw_stuck("devices", 0.5, std::vector<std::string>(unended, "a stream"));
  } catch (const DeviceStuck& error) {
    return error.parts().actual;
  }
}

TEST(StuckDevice, is_one_that_has_not_ended_at_the_deadline) {
  int asked = 0;
  EXPECT_TRUE(ends_within(60, [&] { return ++asked > 100; }));
  EXPECT_TRUE(ends_within(std::numeric_limits<double>::infinity(), [&] { return ++asked > 200; }));
  EXPECT_FALSE(ends_within(0.005, [] { return false; }));
  EXPECT_TRUE(ends_within(0, [] { return true; }));
}

TEST(StuckDevice, tells_twelve_of_those_that_have_not_ended) {
  EXPECT_EQ(text_of(2), "a stream; a stream");
  EXPECT_TRUE(text_of(12).ends_with("a stream; a stream"));
  EXPECT_TRUE(text_of(15).ends_with("a stream; and 3 more"));
}

}  // namespace
}  // namespace ringlab::cuda
