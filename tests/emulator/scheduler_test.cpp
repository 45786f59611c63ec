// Orders: every seed is one, and the same one again.
#include "tests/emulator/machine/scheduler.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "reference/core/error.h"
#include "tests/emulator/kernels.h"

namespace ringlab::cuda::emulator {
namespace {

std::vector<int> order_of(const Launch& launch) {
  std::vector<int> order;
  emulate(launch, [&order] {
    order.push_back(100 * block_index() + thread_index());
    sync_block();
    order.push_back(1000 + 100 * block_index() + thread_index());
  });
  return order;
}

TEST(scheduler, a_seed_gives_the_same_order_again_and_seeds_differ) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Launch launch{.blocks = 2, .threads = 64, .seed = seed};
    EXPECT_EQ(order_of(launch), order_of(launch));
    orders.insert(order_of(launch));
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(scheduler, every_thread_of_every_block_runs_once) {
  for (const int at_once : {1, 2, 5, 100}) {
    std::vector<int> runs(7 * 32);
    emulate({.blocks = 7, .threads = 32, .blocks_at_once = at_once}, [&runs] {
      EXPECT_EQ(block_count(), 7);
      ++runs[static_cast<std::size_t>(block_index() * 32 + thread_index())];
    });
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), 7 * 32);
  }
}

TEST(scheduler, blocks_follow_each_other_or_run_together) {
  // Block 0 waits until block 1 counts: it can only where both are resident.
  int counter = 0;
  const auto kernel = [&counter] {
    if (thread_index() != 0) return;
    if (block_index() == 1) atomic_add(&counter, 1);
    for (int tries = 0; block_index() == 0 && tries < 100000; ++tries) {
      if (atomic_add(&counter, 0) == 1) return;
    }
    if (block_index() == 0) counter = -1000;
  };
  emulate({.blocks = 2, .threads = 32, .blocks_at_once = 2}, kernel);
  EXPECT_EQ(counter, 1);
  counter = 0;
  emulate({.blocks = 2, .threads = 32}, kernel);
  EXPECT_EQ(counter, -999);
}

TEST(scheduler, sums_are_whole_and_counters_give_every_number_once) {
  float sum = 0;
  int counter = 0;
  std::vector<int> numbers;
  const auto kernel = [&] {
    atomic_add(&sum, 1.0f);
    numbers.push_back(atomic_add(&counter, 2));
  };
  emulate({.blocks = 3, .threads = 64, .seed = 5, .blocks_at_once = 3}, kernel);
  EXPECT_EQ(sum, 192);
  std::sort(numbers.begin(), numbers.end());
  for (int i = 0; i < 192; ++i) EXPECT_EQ(numbers[static_cast<std::size_t>(i)], 2 * i);
}

TEST(scheduler, what_a_thread_throws_arrives_and_other_threads_are_unwound) {
  static int alive = 0;
  struct Guard {
    Guard() { ++alive; }
    ~Guard() { --alive; }
  };
  const auto kernel = [] {
    const Guard guard;
    if (thread_index() == 33) throw std::runtime_error("mine");
    sync_block();
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THROW(emulate({.blocks = 3, .threads = 64, .seed = seed, .blocks_at_once = 2}, kernel),
                 std::runtime_error);
    EXPECT_EQ(alive, 0);
  }
}

TEST(scheduler, a_deadlock_names_what_every_thread_waits_for) {
  const auto found = fault_of({.threads = 64, .shared_bytes = 16}, [] {
    if (thread_index() < 32) {
      sync_threads(4, 64);
    } else if (thread_index() != 40) {
      shuffle_xor(1, 1);
    } else {
      auto* barrier = reinterpret_cast<Barrier*>(shared_memory() + 8);
      init_barrier(barrier, 1);
      wait(barrier, 0, "full");
    }
  });
  EXPECT_NE(found.find("threads 0-31: sync_threads(4, 64)"), std::string::npos) << found;
  EXPECT_NE(found.find("threads 32-39, 41-63: shuffle_xor()"), std::string::npos) << found;
  EXPECT_NE(found.find("threads 40: full, barrier at shared offset 8, parity 0"),
            std::string::npos);
}

TEST(scheduler, launches_that_no_gpu_has_are_usage_errors) {
  const auto nothing = [] {};
  EXPECT_THROW(emulate({.threads = 33}, nothing), Error);
  EXPECT_THROW(emulate({.threads = 1056}, nothing), Error);
  EXPECT_THROW(emulate({.threads = 0}, nothing), Error);
  EXPECT_THROW(emulate({.blocks = -1}, nothing), Error);
  EXPECT_THROW(emulate({.shared_bytes = 232449}, nothing), Error);
  EXPECT_THROW(emulate({.blocks_at_once = 0}, nothing), Error);
  EXPECT_NO_THROW(emulate({.blocks = 0}, nothing));
}

}  // namespace
}  // namespace ringlab::cuda::emulator
