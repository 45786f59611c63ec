#include "cli/machine/cuda_code.h"

#include <gtest/gtest.h>

namespace ringlab::cli {
namespace {

TEST(CudaCode, of_machines_runs_on_their_major_version_from_their_minor_version_on) {
  EXPECT_TRUE(has_code_for("80-real", 8, 0));
  EXPECT_TRUE(has_code_for("80-real", 8, 9));
  EXPECT_FALSE(has_code_for("86-real", 8, 0));
  EXPECT_FALSE(has_code_for("80-real", 9, 0));
}

TEST(CudaCode, of_one_machine_runs_on_that_one_alone) {
  EXPECT_TRUE(has_code_for("90a-real", 9, 0));
  EXPECT_TRUE(has_code_for("90a", 9, 0));
  EXPECT_FALSE(has_code_for("90a", 10, 0));
  EXPECT_FALSE(has_code_for("100a-real", 10, 3));
}

TEST(CudaCode, of_the_gpu_preset_does_not_run_on_newer_devices) {
  EXPECT_TRUE(has_code_for("80-real 90a-real", 8, 6));
  EXPECT_TRUE(has_code_for("80-real 90a-real", 9, 0));
  EXPECT_FALSE(has_code_for("80-real 90a-real", 10, 0));
  EXPECT_FALSE(has_code_for("80-real 90a-real", 12, 0));
}

TEST(CudaCode, as_ptx_runs_on_all_newer_devices) {
  EXPECT_TRUE(has_code_for("90a-real 100-virtual", 12, 0));
  EXPECT_FALSE(has_code_for("100-virtual", 9, 0));
  EXPECT_TRUE(has_code_for("80", 10, 0));
  EXPECT_TRUE(has_code_for("80", 8, 0));
}

TEST(CudaCode, that_was_chosen_by_a_word_is_trusted) {
  EXPECT_TRUE(has_code_for("native", 9, 0));
  EXPECT_FALSE(has_code_for("", 9, 0));
}

}  // namespace
}  // namespace ringlab::cli
