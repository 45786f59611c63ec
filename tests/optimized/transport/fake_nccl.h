// A NCCL whose ranks are threads and whose devices are memory: a library of its own, that is loaded
// as the real one is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Only its address counts.
struct CUstream_st {
  char unused = 0;
};

namespace ringlab::nccl {

struct FakeNccl {
  std::atomic<int> version = 22809;
  std::atomic<int> inits = 0;
  std::atomic<int> aborts = 0;
  std::atomic<int> destroyed = 0;
  std::atomic<int> messages = 0;       ///< ends that were put on streams
  std::atomic<int> failing_rank = -1;  ///< its communicator has a remote error
  /// A communicator is in progress until its messages have met their other ends, as if the host had
  /// to wait for them. For devices that do their work when it is issued.
  std::atomic<bool> meets_in_exchange = false;
  std::atomic<bool> spoils = false;  ///< the first byte of what arrives
};

/// Of the library, which is from now on the one that is loaded.
FakeNccl& fake_nccl();
/// As it was at first.
void reset_fake_nccl();
/// Ends on this stream that have not met their other end.
int messages_left(const CUstream_st* stream);
/// Whether messages that have not met, of communicators that live, would read or write these bytes.
bool nccl_uses(const std::byte* memory, std::int64_t bytes);

}  // namespace ringlab::nccl

/// What the library offers besides NCCL's functions.
struct RinglabFakeNccl {
  ringlab::nccl::FakeNccl* state;
  void (*reset)();
  int (*messages_left)(const CUstream_st*);
  bool (*uses)(const std::byte*, std::int64_t);
};
extern "C" const RinglabFakeNccl* ringlab_fake_nccl();
