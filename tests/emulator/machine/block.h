// A block: its threads, its shared memory, and the barriers at which threads meet.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimized/fibres/fibre.h"
#include "tests/emulator/machine/boxes.h"
#include "tests/emulator/machine/cluster.h"
#include "tests/emulator/machine/copies.h"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/here.h"
#include "tests/emulator/machine/mbarriers.h"
#include "tests/emulator/machine/named_barriers.h"
#include "tests/emulator/machine/products.h"
#include "tests/emulator/machine/registers.h"
#include "tests/emulator/machine/scheduler.h"
#include "tests/emulator/machine/shared_memory.h"
#include "tests/emulator/machine/stores.h"
#include "tests/emulator/machine/warp.h"

namespace ringlab::cuda::emulator {

struct ThreadBlock {
  /// Joins the cluster.
  ThreadBlock(Scheduler& its_scheduler, const Launch& its_launch, int its_index,
              std::shared_ptr<ThreadCluster> its_cluster);

  ThreadPlace place_of(const Thread& thread) {
    return {thread.index, index, launch.blocks, cluster_rank, shared.data()};
  }
  /// Called by a thread at its end: faults if other threads still need it.
  void end_thread(const Thread& thread);
  bool has_ended() const { return ended_threads == launch.threads; }
  /// "threads 0-31, 33: sync_block()", one line for each thing that threads wait for.
  std::string describe_waiting() const;

  Scheduler& scheduler;
  const Launch& launch;
  int index;
  std::shared_ptr<ThreadCluster> cluster;
  int cluster_rank;
  int ended_threads = 0;
  std::deque<Fibre> fibres;
  std::vector<Thread> threads;
  SharedWindow shared;
  std::vector<Warp> warps;
  NamedBarriers named_barriers;
  MBarriers mbarriers;
  Copies copies;
  Boxes boxes;
  BoxStores box_stores;
  std::vector<Warpgroup> warpgroups;
  Registers registers;
};

/// The block of the thread that runs.
inline ThreadBlock& block_here() { return *running_thread()->block; }

}  // namespace ringlab::cuda::emulator
