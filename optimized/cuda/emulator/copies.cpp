#include "optimized/cuda/emulator/copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "optimized/cuda/emulator/block.h"
#include "optimized/cuda/emulator/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kBytes = 16;

void land(SharedWindow& shared, std::byte* target, const void* global, bool valid) {
  const std::uint32_t address = shared.address(target, kBytes, kBytes, "copy_16_bytes()");
  // NaN of the issue must still be there: a write in between is a race.
  if (!shared.is_poisoned(address, kBytes)) {
    fault("shared offset {} was written while a copy_16_bytes() to it was under way",
          address - kFirstAddress);
  }
  if (valid) {
    std::memcpy(target, global, kBytes);
  } else {
    std::memset(target, 0, kBytes);  // cp.async with no source bytes: zeros
  }
}

}  // namespace

bool Copies::PerThread::is_done() const {
  // Groups need not end in order, but a wait covers all before the last `pending`.
  const auto end = groups.begin() + static_cast<std::ptrdiff_t>(awaited);
  return std::all_of(groups.begin(), end, [](int copies) { return copies == 0; });
}

void Copies::end_copy(PerThread& owner, std::size_t group) {
  --owner.groups[group];
  --under_way_;
}

void Copies::copy(void* shared, const void* global, bool valid) {
  Thread& thread = *running_thread();
  ThreadBlock& block = *thread.block;
  block.shared.address(shared, kBytes, kBytes, "copy_16_bytes()");
  if (valid && reinterpret_cast<std::uintptr_t>(global) % kBytes != 0) {
    fault("copy_16_bytes(): the global address is no multiple of 16");
  }
  // An ordinary write, unlike load_box: the asynchronous proxy does not see it before a fence.
  auto* target = static_cast<std::byte*>(shared);
  std::memset(target, static_cast<int>(kPoison), kBytes);
  PerThread& mine = threads_[static_cast<std::size_t>(thread.index)];
  const std::size_t group = mine.groups.size() - 1;
  ++mine.groups[group];
  ++under_way_;
  // The source is read when the copy lands, so it must not change before that.
  block.scheduler.post([this, &block, &thread, &mine, group, target, global, valid] {
    land(block.shared, target, global, valid);
    end_copy(mine, group);
    if (mine.is_parked && mine.is_done()) {
      mine.is_parked = false;
      block.scheduler.wake(&thread);
    }
  });
}

void Copies::commit() {
  threads_[static_cast<std::size_t>(running_thread()->index)].groups.push_back(0);
}

void Copies::wait(int pending) {
  Thread& thread = *running_thread();
  PerThread& mine = threads_[static_cast<std::size_t>(thread.index)];
  const std::size_t committed = mine.groups.size() - 1;
  const auto kept = static_cast<std::size_t>(pending);
  // Groups that were committed; the open one at the end is not waited for.
  mine.awaited = committed > kept ? committed - kept : 0;
  if (!mine.is_done()) {
    mine.is_parked = true;
    thread.block->scheduler.park({"wait_for_copies<{}>()", pending});
  }
  thread.block->scheduler.maybe_yield();
}

namespace instructions {

void copy_16_bytes(void* shared, const void* global, bool valid) {
  running_thread()->block->copies.copy(shared, global, valid);
}
void commit_copies() { running_thread()->block->copies.commit(); }
void wait_for_copies(int pending) { running_thread()->block->copies.wait(pending); }

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
