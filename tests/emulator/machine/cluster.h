// A cluster: blocks that run at the same time and reach each other's shared memory.
#pragma once

#include <cstddef>
#include <vector>

#include "optimized/cuda/device_types.h"

namespace ringlab::cuda::emulator {

struct Thread;
struct ThreadBlock;

struct ThreadCluster {
  std::vector<ThreadBlock*> blocks;  ///< by rank
  std::vector<Thread*> parked;       ///< in sync_cluster()

  bool has_ended() const;
  /// The block of a rank. Faults where there is none, or it has ended: its shared memory is gone.
  ThreadBlock& block_at(int rank, const char* what) const;
};

/// Translates an address in the shared memory of `from` to the same offset in that of `to`.
std::byte* same_place(ThreadBlock& from, const void* shared, ThreadBlock& to);

namespace instructions {

void sync_cluster();
void arrive_at(Barrier* barrier, int rank);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
