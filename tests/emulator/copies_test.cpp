// cp.async: what may be read, and when.
#include "tests/emulator/machine/copies.h"

#include <cmath>

#include "tests/emulator/kernels.h"

namespace ringlab::cuda::emulator {
namespace {

struct alignas(16) Source {
  float values[256];
};

Source counted() {
  Source source;
  for (int i = 0; i < 256; ++i) source.values[i] = static_cast<float>(i + 1);
  return source;
}

const Launch kCopyLaunch{.threads = 64, .shared_bytes = 1024};

float* own_place() { return reinterpret_cast<float*>(shared_memory()) + 4 * thread_index(); }

TEST(copies, what_was_waited_for_is_there) {
  const Source source = counted();
  expect_no_fault(kCopyLaunch, [&] {
    const int thread = thread_index();
    copy_16_bytes(own_place(), source.values + 4 * thread, thread % 3 != 0);
    commit_copies();
    wait_for_copies<0>();
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(own_place()[i], thread % 3 != 0 ? source.values[4 * thread + i] : 0);
    }
    sync_block();
    EXPECT_EQ(reinterpret_cast<float*>(shared_memory())[7], 8);
  });
}

TEST(copies, what_was_not_waited_for_is_nan_for_some_order) {
  const Source source = counted();
  float read = 0;
  const auto kernel = [&](bool waits_enough) {
    return [&, waits_enough] {
      copy_16_bytes(own_place(), source.values, true);
      commit_copies();
      commit_copies();  // an empty group is a group
      if (waits_enough) {
        wait_for_copies<1>();
      } else {
        wait_for_copies<2>();
      }
      if (thread_index() == 17) read = own_place()[0];
      wait_for_copies<0>();
    };
  };
  EXPECT_EQ(count_wrong(kCopyLaunch, kernel(true), [&] { return read == 1; }), 0);
  EXPECT_GT(count_wrong(kCopyLaunch, kernel(false), [&] { return read == 1; }), 20);
}

TEST(copies, waiting_for_copies_that_no_group_has_waits_for_nothing) {
  const Source source = counted();
  float read = 0;
  const auto kernel = [&] {
    copy_16_bytes(own_place(), source.values, true);
    wait_for_copies<0>();  // commit_copies() is missing
    if (thread_index() == 17) read = own_place()[0];
    commit_copies();
    wait_for_copies<0>();
  };
  EXPECT_GT(count_wrong(kCopyLaunch, kernel, [&] { return read == 1; }), 20);
}

TEST(copies, one_thread_waits_for_its_own_copies_only) {
  const Source source = counted();
  float read = 0;
  const auto kernel = [&](bool syncs) {
    return [&, syncs] {
      copy_16_bytes(own_place(), source.values + 4 * thread_index(), true);
      commit_copies();
      wait_for_copies<0>();
      if (syncs) sync_block();
      if (thread_index() == 0) read = reinterpret_cast<float*>(shared_memory())[4 * 63];
    };
  };
  EXPECT_EQ(count_wrong(kCopyLaunch, kernel(true), [&] { return read == 4 * 63 + 1; }), 0);
  EXPECT_GT(count_wrong(kCopyLaunch, kernel(false), [&] { return read == 4 * 63 + 1; }), 20);
}

TEST(copies, the_source_is_read_late) {
  Source source = counted();
  float read = 0;
  const auto kernel = [&] {
    copy_16_bytes(own_place(), source.values, true);
    source.values[0] = 5;
    commit_copies();
    wait_for_copies<0>();
    if (thread_index() == 3) read = own_place()[0];
  };
  EXPECT_GT(count_wrong({.threads = 32, .shared_bytes = 1024}, kernel,
                        [&] {
                          source.values[0] = 1;
                          return read == 1;
                        }),
            20);
}

TEST(copies, misaligned_outside_or_abandoned_copies_are_faults) {
  const Source source = counted();
  const auto kernel = [&source](int offset, int from) {
    return [&source, offset, from] {
      copy_16_bytes(shared_memory() + offset, source.values + from, true);
      commit_copies();
    };
  };
  expect_fault(kCopyLaunch, kernel(8, 0), "no multiple of 16");
  expect_fault(kCopyLaunch, kernel(1024, 0), "of shared memory");
  expect_fault(kCopyLaunch, kernel(0, 1), "global address");
  expect_fault({.threads = 32, .shared_bytes = 1024}, kernel(0, 0), "copy_16_bytes()");
}

TEST(copies, writing_where_a_copy_will_land_is_a_fault) {
  const Source source = counted();
  expect_fault(
      kCopyLaunch,
      [&] {
        copy_16_bytes(own_place(), source.values, true);
        own_place()[1] = 3;
        commit_copies();
        wait_for_copies<0>();
      },
      "was written while");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
