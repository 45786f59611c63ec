#include "stages/common/launch_turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "reference/core/machine/machine_error.h"

namespace ringlab::stages {
namespace {

constexpr double kDeadline_s = 0.02;

/// What `work` throws, which is no other exception.
template <class Work>
std::string stuck_text(Work work) {
  try {
    work();
  } catch (const DeviceStuck& error) {
    return error.what();
  }
  return "no DeviceStuck";
}

TEST(LaunchTurn, waits_until_the_kernel_has_ended) {
  const auto memory = std::make_shared<int>(0);
  int asked = 0;
  LaunchTurn("rank 0, stage ring")
      .wait(
          60, [&] { return ++asked > 20; }, memory);
  EXPECT_EQ(asked, 21);
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(LaunchTurn, passes_on_what_the_kernel_did_wrong) {
  const auto fail = []() -> bool { throw MachineError({.where = "device 0"}); };
  EXPECT_THROW(LaunchTurn("rank 0, stage ring").wait(60, fail, nullptr), MachineError);
  EXPECT_NO_THROW(LaunchTurn("rank 1, stage ring")
                      .wait(
                          60, [] { return true; }, nullptr));
}

TEST(LaunchTurn, ends_at_the_deadline_and_frees_nothing_while_the_kernel_works) {
  auto memory = std::make_shared<int>(0);
  const std::weak_ptr<int> held = memory;
  bool ended = false;
  const auto launch = [&] {
    LaunchTurn turn("rank 2, stage flash_blocks");
    turn.wait(
        kDeadline_s, [&] { return ended; }, std::move(memory));
  };
  EXPECT_EQ(stuck_text(launch),
            "rank 2, stage flash_blocks: expected an end within 0.02 s, found its kernel still at "
            "work. Give a longer --timeout where so much is to be done");
  EXPECT_FALSE(held.expired());
  EXPECT_EQ(stuck_text([] { LaunchTurn("rank 0, stage ring"); }),
            "rank 0, stage ring: expected a device that is free, found the kernel of rank 2, stage "
            "flash_blocks still at work on it");
  EXPECT_FALSE(held.expired());

  ended = true;
  LaunchTurn("rank 0, stage ring")
      .wait(
          60, [] { return true; }, nullptr);
  EXPECT_TRUE(held.expired());
}

TEST(LaunchTurn, comes_to_one_rank_after_the_other) {
  std::atomic<int> inside = 0;
  std::atomic<bool> together = false;
  const auto launch = [&] {
    for (int round = 0; round < 50; ++round) {
      LaunchTurn turn("rank");
      together = together || ++inside > 1;
      turn.wait(
          60, [asked = 0]() mutable { return ++asked > 3; }, nullptr);
      --inside;
    }
  };
  std::thread other(launch);
  launch();
  other.join();
  EXPECT_FALSE(together);
}

}  // namespace
}  // namespace ringlab::stages
