#include "tests/emulator/machine/named_barriers.h"

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

struct WarpArrival {
  int barrier;
  int threads;
  std::uint64_t round;
};

/// Brings a warp to a barrier; the last lane calls it for all.
/// bar.sync counts warps: all of its threads come at once.
void bring_warp(const Warp::Operands& lanes) {
  const WarpArrival first = *static_cast<WarpArrival*>(lanes[0]);
  for (const void* lane : lanes) {
    const auto& mine = *static_cast<const WarpArrival*>(lane);
    if (mine.barrier != first.barrier || mine.threads != first.threads) {
      fault("lanes of a warp come to different barriers, {} and {}, or for {} and {} threads",
            first.barrier, mine.barrier, first.threads, mine.threads);
    }
  }
  const std::uint64_t round =
      running_thread()->block->named_barriers.come_as_warp(first.barrier, first.threads);
  for (void* lane : lanes) static_cast<WarpArrival*>(lane)->round = round;
}

}  // namespace

NamedBarriers::NamedBarriers(int threads) : threads_(threads) {
  for (NamedBarrier& state : states_) state.came.resize(static_cast<std::size_t>(threads / 32));
}

std::uint64_t NamedBarriers::come(const char* name, int barrier, int threads) {
  const Thread& thread = *running_thread();
  WarpArrival mine{barrier, threads, 0};
  thread.block->warps[static_cast<std::size_t>(thread.index / 32)].meet(name, &mine, bring_warp);
  return mine.round;
}

std::uint64_t NamedBarriers::come_as_warp(int barrier, int threads) {
  NamedBarrier& state = states_[static_cast<std::size_t>(barrier)];
  ThreadBlock& block = *running_thread()->block;
  const auto warp = static_cast<std::size_t>(running_thread()->index / 32);
  if (state.arrived > 0 && state.threads != threads) {
    fault("barrier {}: {} threads here, {} in others", barrier, threads, state.threads);
  }
  // A warp that comes again before the round is over takes it for the next one.
  if (state.came[warp]) fault("barrier {}: comes twice before the other threads came", barrier);
  state.came[warp] = true;
  state.threads = threads;
  const std::uint64_t round = state.round;
  if ((state.arrived += 32) < threads) return round;  // warps are whole, so 32 at a time
  state.arrived = 0;
  state.came.assign(state.came.size(), false);
  // The barrier can be used again at once: threads that wait know their round by number.
  ++state.round;
  for (int other : state.parked) {
    block.scheduler.wake(&block.threads[static_cast<std::size_t>(other)]);
  }
  state.parked.clear();
  return round;
}

void NamedBarriers::wait(int barrier, std::uint64_t round) {
  NamedBarrier& state = states_[static_cast<std::size_t>(barrier)];
  Thread& thread = *running_thread();
  // The round that it came in may be over already, if its warp was the last.
  if (state.round != round) return thread.block->scheduler.maybe_yield();
  state.parked.push_back(thread.index);
  thread.block->scheduler.park(barrier == 0  // barrier 0 is that of all threads
                                   ? Waiting{"sync_block()"}
                                   : Waiting{"sync_threads({}, {})", barrier, state.threads});
}

void NamedBarriers::end_thread() {
  ++ended_;
  // A barrier of the whole block cannot complete without this thread.
  if (states_[0].arrived > 0) {
    fault("ends while {} of {} threads are in sync_block()", states_[0].arrived, threads_);
  }
}

namespace {

NamedBarriers& barriers_here() { return running_thread()->block->named_barriers; }

void check(const char* what, int barrier, int threads) {
  const int all = running_thread()->block->launch.threads;
  if (barrier < 1 || barrier > 15) fault("{}: there is no barrier {}", what, barrier);
  if (threads <= 0 || threads % 32 != 0 || threads > all) {
    fault("{}: {} threads are no multiple of 32 up to {}", what, threads, all);
  }
}

}  // namespace

namespace instructions {

void sync_block() {
  NamedBarriers& barriers = barriers_here();
  if (barriers.ended() > 0) fault("sync_block(): {} threads have ended", barriers.ended());
  barriers.wait(0, barriers.come("sync_block()", 0, running_thread()->block->launch.threads));
}

void sync_threads(int barrier, int threads) {
  check("sync_threads()", barrier, threads);
  barriers_here().wait(barrier, barriers_here().come("sync_threads()", barrier, threads));
}

void arrive_threads(int barrier, int threads) {
  check("arrive_threads()", barrier, threads);
  // Does not wait: producers tell consumers, and go on.
  barriers_here().come("arrive_threads()", barrier, threads);
  running_thread()->block->scheduler.maybe_yield();
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
