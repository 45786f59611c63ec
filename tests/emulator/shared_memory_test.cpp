#include "tests/emulator/machine/shared_memory.h"

#include <cmath>

#include "tests/emulator/kernels.h"

namespace ringlab::cuda::emulator {
namespace {

TEST(shared_memory, begins_as_nan_in_every_block) {
  expect_no_fault({.blocks = 3, .threads = 32, .shared_bytes = 400}, [] {
    if (thread_index() != 0) return;
    auto* floats = reinterpret_cast<float*>(shared_memory());
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(std::isnan(floats[i]));
      floats[i] = 1;
    }
  });
}

TEST(shared_memory, is_aligned_to_1024_bytes_and_no_more) {
  emulate({.threads = 32, .shared_bytes = 8},
          [] { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shared_memory()) % 2048, 1024u); });
}

TEST(shared_memory, writes_just_outside_are_faults) {
  const auto write_at = [](int offset) {
    return [offset] { shared_memory()[offset] = std::byte{}; };
  };
  const Launch launch{.threads = 32, .shared_bytes = 100};
  expect_no_fault(launch, write_at(99));
  expect_fault(launch, write_at(100), "after the end");
  expect_fault(launch, write_at(-1), "before the beginning");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
