// Barriers: of the block, named, in shared memory; and the registers that warpgroups hand over.
#include "tests/emulator/kernels.h"

namespace ringlab::cuda::emulator {
namespace {

const Launch kLaunch{.threads = 96, .shared_bytes = 512};

int* numbers() { return reinterpret_cast<int*>(shared_memory()); }
Barrier* barrier_at(int offset) { return reinterpret_cast<Barrier*>(shared_memory() + offset); }

TEST(sync, what_was_written_before_a_sync_is_seen_after_it) {
  int read = 0;
  const auto kernel = [&](bool syncs) {
    return [&, syncs] {
      numbers()[thread_index()] = thread_index();
      if (syncs) sync_block();
      if (thread_index() == 2) read = numbers()[95];
    };
  };
  EXPECT_EQ(count_wrong(kLaunch, kernel(true), [&] { return read == 95; }), 0);
  EXPECT_GT(count_wrong(kLaunch, kernel(false), [&] { return read == 95; }), 20);
}

TEST(sync, named_barriers_hand_over_between_warps) {
  int read = 0;
  const auto kernel = [&](bool syncs) {
    return [&, syncs] {
      const int warp = thread_index() / 32;
      if (warp == 0) {
        numbers()[thread_index()] = 7;
        arrive_threads(3, 64);
      } else if (warp == 2) {
        if (syncs) sync_threads(3, 64);
        read = numbers()[thread_index() - 64];
        if (!syncs) arrive_threads(3, 64);
      }
    };
  };
  EXPECT_EQ(count_wrong(kLaunch, kernel(true), [&] { return read == 7; }), 0);
  EXPECT_GT(count_wrong(kLaunch, kernel(false), [&] { return read == 7; }), 10);
}

TEST(sync, wrong_participants_are_faults) {
  expect_fault(
      kLaunch,
      [] {
        if (thread_index() < 64) sync_block();
      },
      "");
  expect_fault(
      {.threads = 128},
      [] {
        const int warp = thread_index() / 32;
        if (warp < 3) sync_threads(1, 64 + 32 * warp);
      },
      "threads here");
  expect_fault(
      kLaunch, [] { sync_threads(1, 64); }, "deadlock");
  expect_fault(
      kLaunch,
      [] {
        if (thread_index() % 3 != 0) sync_threads(1, 64);
      },
      "sync_threads()");
  expect_fault(
      kLaunch,
      [] {
        arrive_threads(2, 96);
        arrive_threads(2, 96);
      },
      "comes twice");
  expect_fault(
      kLaunch, [] { sync_threads(0, 96); }, "no barrier 0");
  expect_fault(
      kLaunch, [] { sync_threads(16, 96); }, "no barrier 16");
  expect_fault(
      kLaunch, [] { sync_threads(1, 40); }, "multiple of 32");
}

struct Pipeline {
  int stages = 2;
  int items = 7;
  bool waits_for_empty = true;
  bool parity_flips = true;
  int full_arrivals = 32;
};

/// Warp 0 makes numbers, warp 1 adds them up, through a ring of stages.
std::function<void()> pipeline(int& sum, const Pipeline& p) {
  return [&sum, p] {
    const auto full = [](int stage) { return barrier_at(256 + 8 * stage); };
    const auto empty = [](int stage) { return barrier_at(320 + 8 * stage); };
    if (thread_index() == 0) {
      for (int s = 0; s < p.stages; ++s) {
        init_barrier(full(s), p.full_arrivals);
        init_barrier(empty(s), 32);
      }
      publish_barriers();
    }
    sync_block();
    const int lane = thread_index() % 32;
    int mine = 0;
    for (int i = 0; i < p.items; ++i) {
      const int s = i % p.stages;
      const int round = p.parity_flips ? i / p.stages % 2 : 0;
      int* place = numbers() + s * 32 + lane;
      if (thread_index() < 32) {
        if (p.waits_for_empty) wait(empty(s), 1 - round, "empty");
        *place = i + 1;
        arrive(full(s));
      } else if (thread_index() < 64) {
        wait(full(s), round, "full");
        mine += *place;
        arrive(empty(s));
      }
    }
    if (thread_index() == 40) sum = mine;
  };
}

TEST(mbarriers, a_pipeline_hands_every_item_over_once) {
  int sum = 0;
  for (int stages = 1; stages <= 2; ++stages) {
    const auto kernel = pipeline(sum, {.stages = stages});
    EXPECT_EQ(count_wrong(kLaunch, kernel, [&] { return sum == 28; }), 0);
  }
}

TEST(mbarriers, a_pipeline_with_a_mistake_goes_wrong) {
  int sum = 0;
  const auto wrong = [&sum](const Pipeline& p) {
    return count_wrong(kLaunch, pipeline(sum, p), [&] { return sum == 28; });
  };
  EXPECT_GT(wrong({.waits_for_empty = false}), 50);
  EXPECT_GT(wrong({.parity_flips = false}), 50);
  EXPECT_EQ(wrong({.full_arrivals = 64}), kSeeds);
  EXPECT_GT(wrong({.full_arrivals = 16}), 50);
}

TEST(mbarriers, a_new_barrier_is_past_parity_one_and_before_parity_zero) {
  const auto kernel = [](int parity) {
    return [parity] {
      if (thread_index() == 0) {
        init_barrier(barrier_at(64), 1);
        publish_barriers();
      }
      sync_block();
      wait(barrier_at(64), parity, "K full");
    };
  };
  expect_no_fault(kLaunch, kernel(1));
  expect_fault(kLaunch, kernel(0),
               "block 0, threads 0-95: K full, barrier at shared offset 64, parity 0");
}

TEST(mbarriers, one_arrival_too_many_is_a_fault) {
  expect_fault(
      kLaunch,
      [] {
        if (thread_index() != 0) return;
        init_barrier(barrier_at(64), 2);
        publish_barriers();
        arrive(barrier_at(64));
        arrive_expecting(barrier_at(64), 1024);  // the phase stays open for bytes
        arrive(barrier_at(64));
      },
      "have come already");
}

TEST(mbarriers, what_is_no_barrier_is_a_fault) {
  const auto with = [](auto body) {
    return [body] {
      if (thread_index() == 0) body();
    };
  };
  expect_fault(kLaunch, with([] { arrive(barrier_at(64)); }), "no barrier yet");
  expect_fault(kLaunch, with([] { init_barrier(barrier_at(4), 1); }), "multiple of 8");
  expect_fault(kLaunch, with([] { init_barrier(barrier_at(512), 1); }), "of shared memory");
  expect_fault(kLaunch, with([] { init_barrier(barrier_at(64), 0); }), "0 arrivals");
  expect_fault(kLaunch, with([] {
                 init_barrier(barrier_at(64), 1);
                 numbers()[16] = 0;
                 arrive(barrier_at(64));
               }),
               "written over");
  expect_fault(kLaunch, with([] {
                 init_barrier(barrier_at(64), 1);
                 wait(barrier_at(64), 2, "full");
               }),
               "parity of 2");
}

TEST(registers, are_taken_when_others_gave_them) {
  const Launch launch{.threads = 384};
  expect_no_fault(launch, [] {
    if (thread_index() < 128) {
      give_registers<24>();
    } else {
      take_registers<240>();
    }
  });
  expect_fault(
      launch, [] { thread_index() < 128 ? give_registers<40>() : take_registers<240>(); },
      "take_registers<240>(), has 168");
  expect_fault(
      launch, [] { give_registers<200>(); }, "has only 168");
  expect_fault(
      launch, [] { take_registers<100>(); }, "multiple of 8");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
