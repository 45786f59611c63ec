#include "optimized/cuda/driver_check.h"

#include <gtest/gtest.h>

namespace ringlab::cuda {
namespace {

constexpr int kRuntime = 13020;  // CUDA 13.2

TEST(DriverCheck, takes_a_driver_of_the_same_major_version_or_a_newer_one) {
  for (const int driver : {13000, 13010, 13020, 13090, 14000}) {
    EXPECT_FALSE(driver_problem(driver, kRuntime)) << driver;
  }
}

TEST(DriverCheck, names_both_versions_of_an_older_one) {
  for (const int driver : {12090, 9020}) {
    const auto problem = driver_problem(driver, kRuntime);
    ASSERT_TRUE(problem) << driver;
    EXPECT_EQ(problem->expected, "one for CUDA 13.0 or newer, which this build needs");
    EXPECT_EQ(problem->actual, driver == 9020 ? "one for CUDA 9.2" : "one for CUDA 12.9");
    EXPECT_NE(problem->hint.find("Update"), std::string::npos);
  }
}

TEST(DriverCheck, says_that_there_is_none) {
  const auto problem = driver_problem(0, kRuntime);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->actual, "none");
  EXPECT_NE(problem->hint.find("Install"), std::string::npos);
}

}  // namespace
}  // namespace ringlab::cuda
