// Device memory that runs out, the tests' own canaries, and kernels that are loaded.
#include <string>
#include <vector>

#include "optimized/cuda/kernel_list.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/device/guarded.h"

namespace ringlab::cuda {
namespace {

using DeviceMemory = DeviceTest<Needs::any_kernel>;

TEST_F(DeviceMemory, that_is_not_there_is_an_error_that_names_what_is_needed_and_free) {
  try {
    allocate(0, std::int64_t{1} << 50);
    FAIL() << "a pebibyte was allocated";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_NE(text.find("device 0"), std::string::npos) << text;
    EXPECT_NE(text.find("1073741824.0 MiB of memory in one piece"), std::string::npos) << text;
    EXPECT_NE(text.find(" MiB free of "), std::string::npos) << text;
  }
  EXPECT_NO_THROW(allocate(0, 1 << 20)) << "the error stayed";
}

TEST_F(DeviceMemory, comes_back_as_it_was_given) {
  const std::vector<float> values = {1, -2, 3};
  const Guarded<float> guarded(values);
  EXPECT_EQ(guarded.values("values"), values);
  EXPECT_NO_THROW(guarded.expect_unchanged(values, "values"));
}

TEST_F(DeviceMemory, that_is_written_where_it_should_not_be_is_found_out) {
  const std::vector<float> values = {1, -2, 3};
  for (const int place : {-1, 3}) {
    const Guarded<float> guarded(values);
    fill_zeros(0, reinterpret_cast<std::byte*>(guarded.data() + place), 4, nullptr);
    wait_for_device(0);
    EXPECT_THROW(guarded.values("values"), std::runtime_error) << place;
  }
  const Guarded<float> changed(values);
  fill_zeros(0, reinterpret_cast<std::byte*>(changed.data() + 1), 4, nullptr);
  wait_for_device(0);
  EXPECT_THROW(changed.expect_unchanged(values, "values"), std::runtime_error);
}

/// 22 of the Hopper passes, 24 of the portable ones, 12 of rows, 2 of streams, and the ladder's.
TEST(ListedKernels, are_all_that_a_run_can_launch) { EXPECT_GT(listed_kernels().size(), 60u); }

TEST_F(DeviceMemory, has_all_kernels_that_the_device_can_run_once_they_are_asked_for) {
  load_kernels(0);
  EXPECT_NO_THROW(load_kernels(0));
  wait_for_device(0);
}

}  // namespace
}  // namespace ringlab::cuda
