// The CPU block finds a missing barrier: kernels with one give other answers for other seeds.
#include "stages/tile/cpu_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace ringlab::stages {
namespace {

constexpr int kThreads = 16;

/// Each thread writes its number, then reads its neighbour's: two phases, as it must be.
struct NeighbourWithBarrier {
  std::vector<double>* out;
  template <class Block>
  void operator()(Block& block) const {
    auto* numbers = block.template shared<double>(block.threads());
    block.each([&](int thread) { numbers[thread] = thread; });
    block.each([&](int thread) {
      (*out)[static_cast<std::size_t>(thread)] = numbers[(thread + 1) % block.threads()];
    });
  }
};

/// The same with the barrier left out.
struct NeighbourWithoutBarrier {
  std::vector<double>* out;
  template <class Block>
  void operator()(Block& block) const {
    auto* numbers = block.template shared<double>(block.threads());
    block.each([&](int thread) {
      numbers[thread] = thread;
      (*out)[static_cast<std::size_t>(thread)] = numbers[(thread + 1) % block.threads()];
    });
  }
};

/// Without a barrier again, but thread 0 writes for all: right when it happens to run first.
struct LeaderWithoutBarrier {
  std::vector<double>* out;
  template <class Block>
  void operator()(Block& block) const {
    auto* number = block.template shared<double>(1);
    block.each([&](int thread) {
      if (thread == 0) *number = 7;
      (*out)[static_cast<std::size_t>(thread)] = *number;
    });
  }
};

template <class Kernel>
int right_answers(const std::vector<double>& want, int seeds) {
  int right = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    std::vector<double> out(kThreads);
    CpuBlock block(0, kThreads, static_cast<std::uint64_t>(seed));
    Kernel{&out}(block);
    right += out == want ? 1 : 0;
  }
  return right;
}

std::vector<double> neighbours() {
  std::vector<double> want(kThreads);
  for (int i = 0; i < kThreads; ++i) want[static_cast<std::size_t>(i)] = (i + 1) % kThreads;
  return want;
}

TEST(CpuBlockTest, a_kernel_with_its_barriers_is_right_for_every_seed) {
  EXPECT_EQ(right_answers<NeighbourWithBarrier>(neighbours(), 200), 200);
}

TEST(CpuBlockTest, a_missing_barrier_is_seen_for_every_seed_when_all_threads_depend_on_others) {
  EXPECT_EQ(right_answers<NeighbourWithoutBarrier>(neighbours(), 200), 0);
}

TEST(CpuBlockTest, a_missing_barrier_that_the_natural_order_hides_is_seen_by_shuffling) {
  const int right = right_answers<LeaderWithoutBarrier>(std::vector<double>(kThreads, 7), 200);
  EXPECT_LT(right, 50);  // thread 0 comes first in about one seed of 16
}

TEST(CpuBlockTest, every_phase_runs_every_thread_once_in_an_order_of_its_own) {
  std::set<std::vector<int>> orders;
  CpuBlock block(3, kThreads, 1);
  for (int phase = 0; phase < 50; ++phase) {
    std::vector<int> order;
    block.each([&](int thread) { order.push_back(thread); });
    orders.insert(order);
    std::sort(order.begin(), order.end());
    std::vector<int> all(kThreads);
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(order, all);
  }
  EXPECT_GT(orders.size(), 45u);
}

TEST(CpuBlockTest, shared_memory_starts_as_nan_and_per_thread_values_last) {
  CpuBlock block(0, 4, 0);
  auto* shared = block.shared<float>(5);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(shared[i]));
  EXPECT_EQ(block.shared_bytes(), 20);
  auto counts = block.per_thread<int>();
  for (int phase = 0; phase < 3; ++phase) block.each([&](int thread) { counts[thread] += thread; });
  EXPECT_EQ(counts[3], 9);
  EXPECT_EQ(counts[0], 0);
}

}  // namespace
}  // namespace ringlab::stages
