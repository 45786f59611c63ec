#include "tests/emulator/machine/async_groups.h"

#include <algorithm>

#include "tests/emulator/machine/block.h"

namespace ringlab::cuda::emulator {

bool AsyncGroups::PerThread::is_done() const {
  // Groups need not end in order, but a wait covers all before the last `pending`.
  const auto end = groups.begin() + static_cast<std::ptrdiff_t>(awaited);
  return std::all_of(groups.begin(), end, [](int work) { return work == 0; });
}

AsyncGroups::PerThread& AsyncGroups::of(const Thread& thread) {
  return threads_[static_cast<std::size_t>(thread.index)];
}

AsyncGroups::Work AsyncGroups::begin() {
  Thread& thread = *running_thread();
  std::vector<int>& groups = of(thread).groups;
  ++groups.back();
  ++under_way_;
  return {&thread, groups.size() - 1};
}

void AsyncGroups::end(const Work& work) {
  PerThread& owner = of(*work.thread);
  --owner.groups[work.group];
  --under_way_;
  if (!owner.is_parked || !owner.is_done()) return;
  owner.is_parked = false;
  work.thread->block->scheduler.wake(work.thread);
}

void AsyncGroups::commit() { of(*running_thread()).groups.push_back(0); }

void AsyncGroups::wait(const char* what, int pending) {
  Thread& thread = *running_thread();
  PerThread& mine = of(thread);
  const std::size_t committed = mine.groups.size() - 1;
  const auto kept = static_cast<std::size_t>(pending);
  // Waits for committed groups only, not for the open one at the end.
  mine.awaited = committed > kept ? committed - kept : 0;
  if (!mine.is_done()) {
    mine.is_parked = true;
    thread.block->scheduler.park({what, pending});
  }
  thread.block->scheduler.maybe_yield();
}

}  // namespace ringlab::cuda::emulator
