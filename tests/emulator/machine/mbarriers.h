// Barriers in shared memory.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "optimized/cuda/device_types.h"

namespace ringlab::cuda::emulator {

struct Thread;
struct ThreadBlock;

/// An mbarrier: its phase ends when all arrivals came and no bytes are outstanding.
struct MBarrier {
  int arrivals = 0;                ///< per phase
  int pending = 0;                 ///< of this phase
  std::int64_t pending_bytes = 0;  ///< may be negative for a while: bytes that came before they
                                   ///< were expected
  std::uint64_t phase = 0;
  const Thread* unpublished_by = nullptr;
  std::vector<Thread*> parked;
};

class MBarriers {
 public:
  explicit MBarriers(ThreadBlock& block) : block_(block) {}

  void init(Barrier* barrier, int arrivals);
  void publish();
  void arrive(Barrier* barrier, std::uint32_t bytes, const char* what);
  void wait(Barrier* barrier, int parity, WaitName name);
  /// The barrier at `barrier`, known to every thread.
  MBarrier& published(Barrier* barrier, const char* what);
  /// `bytes` of a copy came.
  static void complete(MBarrier& barrier, std::uint32_t bytes);

 private:
  MBarrier& at(const Barrier* barrier, const char* what);

  ThreadBlock& block_;
  std::unordered_map<std::uint32_t, MBarrier> barriers_;  // by address; references stay valid
};

namespace instructions {

void init_barrier(Barrier* barrier, int arrivals);
void publish_barriers();
void arrive(Barrier* barrier);
void arrive_expecting(Barrier* barrier, std::uint32_t bytes);
void wait(Barrier* barrier, int parity, WaitName name);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
