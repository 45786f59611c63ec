// The choice of what runs next: a thread that can go on, or asynchronous work, in a seeded order.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "optimized/fibres/fibre.h"

namespace ringlab::cuda::emulator {

struct ThreadBlock;

/// A thread's wait, as a text with two numbers.
struct Waiting {
  const char* format = nullptr;  ///< a format with up to two places
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::uint64_t name = 0;  ///< letters of a WaitName, where the kernel gives one

  std::string describe() const;
  bool operator==(const Waiting&) const = default;
};

/// A thread of a block.
struct Thread {
  ThreadBlock* block = nullptr;
  int index = 0;
  Fibre* fibre = nullptr;
  Waiting waiting = {};
  std::size_t favoured_with = 0;  ///< the number of its warp in the scheduler's eyes
};

/// The order in which threads run and asynchronous work happens. A quarter of the seeds lets
/// threads run in a uniform order, the others favour some warps for a while, short or long;
/// asynchronous work happens at once, soon, late, or only when no thread can go on without it.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);

  void add(Thread* thread);
  /// Parks the running thread until somebody wakes it.
  void park(Waiting waiting);
  void wake(Thread* thread);
  void yield();        ///< lets others run
  void maybe_yield();  ///< now and then
  /// Adds work that happens at some time from now on, in any order.
  void post(std::function<void()> job);

  /// Runs one thread until it stops, or one job. False: nobody can run and there is nothing to do.
  bool step();
  /// Lets threads that are resumed throw from now on, so that their stacks unwind.
  void abandon() { is_abandoned_ = true; }
  void resume(Thread* thread);

 private:
  bool chance(double probability);
  /// Below 2^32, and without a division.
  std::size_t below(std::size_t count) { return (random_() >> 32) * count >> 32; }
  Thread* pick();
  void run_a_job();
  void suspend();

  std::mt19937_64 random_;
  double eagerness_;
  int candidates_;
  int picks_per_mood_;
  std::vector<std::uint32_t> priorities_;  // of warps
  int picks_ = 0;
  std::vector<Thread*> ready_;
  std::vector<std::function<void()>> jobs_;
  bool is_abandoned_ = false;
};

/// Thrown inside threads of an abandoned run; caught where threads begin.
struct Abandoned {};

/// The thread that runs, or null.
Thread* running_thread();

}  // namespace ringlab::cuda::emulator
