#include "tests/emulator/machine/cluster.h"

#include <algorithm>

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {

bool ThreadCluster::has_ended() const {
  return std::ranges::all_of(blocks, [](const ThreadBlock* block) { return block->has_ended(); });
}

ThreadBlock& ThreadCluster::block_at(int rank, const char* what) const {
  if (rank < 0 || rank >= static_cast<int>(blocks.size())) {
    fault("{}: a cluster of {} blocks has no rank {}", what, blocks.size(), rank);
  }
  ThreadBlock& block = *blocks[static_cast<std::size_t>(rank)];
  if (block.has_ended()) fault("{}: block {} of the cluster has ended", what, rank);
  return block;
}

std::byte* same_place(ThreadBlock& from, const void* shared, ThreadBlock& to) {
  return to.shared.data() + (static_cast<const std::byte*>(shared) - from.shared.data());
}

namespace instructions {

void sync_cluster() {
  ThreadBlock& block = block_here();
  ThreadCluster& cluster = *block.cluster;
  const auto threads = cluster.blocks.size() * static_cast<std::size_t>(block.launch.threads);
  if (cluster.parked.size() + 1 < threads) {
    cluster.parked.push_back(running_thread());
    block.scheduler.park({"sync_cluster()"});
    return;
  }
  for (Thread* thread : cluster.parked) block.scheduler.wake(thread);
  cluster.parked.clear();
}

void arrive_at(Barrier* barrier, int rank) {
  ThreadBlock& here = block_here();
  ThreadBlock& there = here.cluster->block_at(rank, "arrive_at()");
  here.shared.address(barrier, sizeof(Barrier), alignof(Barrier), "arrive_at()");
  there.mbarriers.arrive(reinterpret_cast<Barrier*>(same_place(here, barrier, there)), 0,
                         "arrive_at()");
}

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
