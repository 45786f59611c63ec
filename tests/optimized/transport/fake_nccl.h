// A NCCL whose ranks are threads and whose devices are memory: what nccl_group.cpp calls of it.
#pragma once

#include <atomic>
#include <string>

struct CUstream_st {
  std::atomic<int> left = 0;  ///< messages that have not met their other end
};

namespace ringlab::nccl {

struct FakeNccl {
  std::atomic<int> version = 22809;
  std::atomic<int> inits = 0;
  std::atomic<int> aborts = 0;
  std::atomic<int> destroyed = 0;
  std::atomic<int> messages = 0;       ///< ends that were put on streams
  std::atomic<int> failing_rank = -1;  ///< its communicator has a remote error
};
FakeNccl& fake_nccl();
/// As it was at first.
void reset_fake_nccl();

}  // namespace ringlab::nccl
