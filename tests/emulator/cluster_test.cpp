// Clusters: blocks that reach each other's barriers and shared memory.
#include "tests/emulator/machine/cluster.h"

#include "optimized/cuda/hopper/tensor_map.h"
#include "reference/core/error.h"
#include "tests/emulator/kernels.h"
#include "tests/emulator/matrices.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kHalf = 8 * 128;  // bytes of eight rows
const Launch kPair{.blocks = 4, .threads = 64, .shared_bytes = 2 * kHalf + 16, .cluster = 2};

Barrier* of_pair(int number) {
  return reinterpret_cast<Barrier*>(shared_memory() + 2 * kHalf) + number;
}

struct PairHabits {
  bool begins_together = true;
  bool ends_together = true;
  bool expects_all = true;
  bool hears_of_both = true;
};

/// Each block loads half of 16 rows for both, twice: before the second time both have read the first.
std::function<void()> halves_for_both(const TensorMap& map, int& wrong, const PairHabits& habits) {
  return [&map, &wrong, habits] {
    Barrier *const full = of_pair(0), *const empty = of_pair(1);
    const int thread = thread_index(), rank = cluster_rank();
    if (thread == 0) {
      init_barrier(full, 1);
      init_barrier(empty, habits.hears_of_both ? 2 : 1);
      publish_barriers();
    }
    if (habits.begins_together) sync_cluster();
    sync_block();
    for (int round = 0; round < 2; ++round) {
      if (thread == 0) {
        wait(empty, round ^ 1, "empty");
        arrive_expecting(full, habits.expects_all ? 2 * kHalf : kHalf);
        load_box_for_all(shared_memory() + rank * kHalf, &map, full, 2, 0, 16 * round + 8 * rank,
                         0);
      }
      if (thread < 32) continue;
      wait(full, round, "full");
      for (int i = thread - 32; i < 16 * 64; i += 32) {
        const std::uint32_t place = swizzle_128(static_cast<std::uint32_t>(2 * i));
        const auto read = *reinterpret_cast<const BFloat16*>(shared_memory() + place);
        wrong += static_cast<double>(read) != 16 * round + i / 64;
      }
      sync_warp();
      if (thread == 32) {
        arrive_at(empty, 0);
        if (habits.hears_of_both) arrive_at(empty, 1);
      }
    }
    if (habits.ends_together) sync_cluster();
  };
}

/// 32 rows, each with its number in all channels.
std::vector<BFloat16> numbered_rows() {
  std::vector<BFloat16> rows;
  for (int i = 0; i < 32 * 64; ++i) rows.push_back(BFloat16(static_cast<double>(i / 64)));
  return rows;
}

class cluster : public testing::Test {
 protected:
  int count_wrong_runs(const PairHabits& habits) {
    return count_wrong(
        kPair, [&] { halves_for_both(map_, wrong_, habits)(); },
        [&] { return std::exchange(wrong_, 0) == 0; });
  }
  std::vector<BFloat16> rows_ = numbered_rows();
  TensorMap map_ = emulator::make_tensor_map({.base = rows_.data(),
                                              .type = DType::bf16,
                                              .heads = 1,
                                              .rows = 32,
                                              .channels = 64,
                                              .box_rows = 8});
  int wrong_ = 0;
};

TEST_F(cluster, loads_halves_for_both_blocks) { EXPECT_EQ(count_wrong_runs({}), 0); }

TEST_F(cluster, needs_every_meeting_byte_and_arrival) {
  EXPECT_GT(count_wrong_runs({.begins_together = false}), 0);
  EXPECT_GT(count_wrong_runs({.ends_together = false}), 5);
  EXPECT_GT(count_wrong_runs({.expects_all = false}), 20);
  EXPECT_GT(count_wrong_runs({.hears_of_both = false}), 20);
}

TEST_F(cluster, faults_name_what_is_not_there) {
  expect_fault(
      kPair, [] { arrive_at(of_pair(0), 2); }, "a cluster of 2 blocks has no rank 2");
  expect_fault(
      kPair,
      [] {
        if (cluster_rank() == 0 && thread_index() == 0) {
          init_barrier(of_pair(0), 1);
          publish_barriers();
          sync_cluster();
        }
      },
      "sync_cluster()");
  EXPECT_THROW(emulate({.blocks = 3, .cluster = 2}, [] {}), Error);
}

}  // namespace
}  // namespace ringlab::cuda::emulator
