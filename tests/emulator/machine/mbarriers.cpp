#include "tests/emulator/machine/mbarriers.h"

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kMaxArrivals = (1 << 20) - 1;        // as an mbarrier's count
constexpr std::int64_t kMaxBytes = (1 << 20) - 1;  // and its bytes

/// The bytes that a barrier holds, so that writes over it are found.
std::uint64_t bits_at(std::uint32_t address) { return 0x6261727269657200u ^ address; }

void end_phase_if_complete(MBarrier& barrier) {
  // Bytes may be below 0 for a while: a copy may end before its arrival has announced it.
  if (barrier.pending != 0 || barrier.pending_bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;  // for the next phase
  for (Thread* thread : barrier.parked) thread->block->scheduler.wake(thread);
  barrier.parked.clear();
}

}  // namespace

MBarrier& MBarriers::at(const Barrier* barrier, const char* what) {
  const std::uint32_t address =
      block_.shared.address(barrier, sizeof(Barrier), alignof(Barrier), what);
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) {
    fault("{}: there is no barrier yet at shared offset {}", what, address - kFirstAddress);
  }
  // A barrier is opaque: other use of its memory breaks it.
  if (barrier->state != bits_at(address)) {
    fault("{}: the barrier at shared offset {} was written over", what, address - kFirstAddress);
  }
  return found->second;
}

MBarrier& MBarriers::published(Barrier* barrier, const char* what) {
  MBarrier& found = at(barrier, what);
  if (found.unpublished_by) fault("{}: publish_barriers() did not follow init_barrier()", what);
  return found;
}

void MBarriers::init(Barrier* barrier, int arrivals) {
  const std::uint32_t address =
      block_.shared.address(barrier, sizeof(Barrier), alignof(Barrier), "init_barrier()");
  if (arrivals < 1 || arrivals > kMaxArrivals) fault("init_barrier(): {} arrivals", arrivals);
  // A GPU would lose the threads that wait.
  const auto found = barriers_.find(address);
  if (found != barriers_.end() && !found->second.parked.empty()) {
    fault("init_barrier(): threads wait for the barrier that is there");
  }
  barriers_[address] = {.arrivals = arrivals,
                        .pending = arrivals,
                        .pending_bytes = 0,
                        .phase = 0,
                        .unpublished_by = running_thread(),
                        .parked = {}};
  barrier->state = bits_at(address);
}

void MBarriers::publish() {
  // Publishes barriers of this thread only: those of others need a fence of their own.
  for (auto& [address, barrier] : barriers_) {
    if (barrier.unpublished_by == running_thread()) barrier.unpublished_by = nullptr;
  }
  // The same fence makes ordinary writes visible to the asynchronous proxy.
  block_.shared.fence();
}

void MBarriers::arrive(Barrier* barrier, std::uint32_t bytes, const char* what) {
  MBarrier& target = at(barrier, what);
  // One arrival too many would end the next phase too early.
  if (target.pending == 0) {
    fault("{}: the {} arrivals of this phase at shared offset {} have come already", what,
          target.arrivals, reinterpret_cast<std::byte*>(barrier) - block_.shared.data());
  }
  target.pending_bytes += bytes;
  if (target.pending_bytes > kMaxBytes) fault("{}: {} bytes expected", what, target.pending_bytes);
  --target.pending;
  end_phase_if_complete(target);
  block_.scheduler.maybe_yield();
}

void MBarriers::complete(MBarrier& barrier, std::uint32_t bytes) {
  barrier.pending_bytes -= bytes;
  end_phase_if_complete(barrier);
}

void MBarriers::wait(Barrier* barrier, int parity, WaitName name) {
  if (parity != 0 && parity != 1) fault("wait(): a parity of {}", parity);
  MBarrier& target = at(barrier, "wait()");
  // Checks again after each wake-up: another phase may have ended and changed the parity.
  while (static_cast<int>(target.phase & 1) == parity) {
    target.parked.push_back(running_thread());
    block_.scheduler.park({"barrier at shared offset {}, parity {}",
                           reinterpret_cast<std::byte*>(barrier) - block_.shared.data(), parity,
                           name.letters()});
  }
  block_.scheduler.maybe_yield();
}

namespace instructions {

void init_barrier(Barrier* barrier, int arrivals) {
  block_here().mbarriers.init(barrier, arrivals);
}
void publish_barriers() { block_here().mbarriers.publish(); }
void arrive(Barrier* barrier) { block_here().mbarriers.arrive(barrier, 0, "arrive()"); }
void arrive_expecting(Barrier* barrier, std::uint32_t bytes) {
  block_here().mbarriers.arrive(barrier, bytes, "arrive_expecting()");
}
void wait(Barrier* barrier, int parity, WaitName name) {
  block_here().mbarriers.wait(barrier, parity, name);
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
