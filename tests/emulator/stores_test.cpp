// store_box and add_box: the rules of the asynchronous proxy.
#include "tests/emulator/machine/stores.h"

#include <algorithm>

#include "optimized/cuda/hopper/tensor_map.h"
#include "optimized/cuda/hopper/warp_boxes.cuh"
#include "tests/emulator/kernels.h"

namespace ringlab::cuda::emulator {
namespace {

const Launch kStoreLaunch{.threads = 32, .shared_bytes = kWarpBoxBytes};

/// Numbers (16, 32).
struct Memory {
  alignas(16) float numbers[512] = {};
  TensorMap map(DType type = DType::f32) {
    return emulator::make_tensor_map({.base = numbers,
                                      .type = type,
                                      .heads = 1,
                                      .rows = kWarpRows,
                                      .channels = 32,
                                      .box_rows = kWarpRows});
  }
};

struct AddHabits {
  bool fences = true;
  bool syncs = true;
  bool commits = true;
  bool waits = true;
  int row = 0;
};

/// Ones, and then twos, are added by way of the same shared memory.
std::function<void()> add_twice(const TensorMap& map, const AddHabits& habits) {
  return [&map, habits] {
    const bool leads = thread_index() == 0;
    auto* numbers = reinterpret_cast<float*>(shared_memory());
    for (int round = 1; round <= 2; ++round) {
      if (leads && habits.waits) wait_for_boxes<0>();
      sync_warp();
      for (int i = 0; i < 16; ++i) numbers[16 * thread_index() + i] = static_cast<float>(round);
      if (habits.fences) fence_async_proxy();
      if (habits.syncs) sync_warp();
      if (!leads) continue;
      add_box(&map, shared_memory(), 0, habits.row, 0);
      if (habits.commits) commit_boxes();
    }
    if (leads) wait_for_boxes<0>();
  };
}

bool all_are(const Memory& memory, float number) {
  return std::all_of(memory.numbers, memory.numbers + 512, [&](float x) { return x == number; });
}

TEST(stores, are_done_by_the_end_where_rules_are_kept) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    Memory memory;
    const TensorMap map = memory.map();
    Launch launch = kStoreLaunch;
    launch.seed = static_cast<std::uint64_t>(seed);
    ASSERT_EQ(fault_of(launch, add_twice(map, {})), "");
    ASSERT_TRUE(all_are(memory, 3)) << seed;
  }
}

TEST(stores, need_fences_waits_and_groups) {
  Memory memory;
  const TensorMap map = memory.map();
  expect_fault(kStoreLaunch, add_twice(map, {.fences = false}), "no fence_async_proxy()");
  expect_fault(kStoreLaunch, add_twice(map, {.commits = false}), "under way");
  expect_fault(kStoreLaunch, add_twice(map, {.waits = false}), "was written while add_box()");
  EXPECT_FALSE(faults_of(kStoreLaunch, add_twice(map, {.syncs = false})).empty());
}

TEST(stores, may_not_begin_in_front_of_their_tensor) {
  Memory memory;
  const TensorMap map = memory.map();
  expect_no_fault(kStoreLaunch, add_twice(map, {.row = 9}));
  expect_fault(kStoreLaunch, add_twice(map, {.row = -3}), "in front of its tensor");
}

TEST(stores, add_nothing_but_f32_and_begin_where_a_period_begins) {
  Memory memory;
  const TensorMap map = memory.map(DType::bf16);
  expect_fault(kStoreLaunch, add_twice(map, {}), "expected f32");
  expect_fault(
      {.threads = 32, .shared_bytes = 2 * kWarpBoxBytes},
      [&map] { store_box(&map, shared_memory() + 512, 0, 0, 0); }, "no multiple of 1024");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
