// A NCCL whose ranks are threads and whose devices are memory: a library of its own, that is loaded
// as the real one is.
//
// As in the real one, what was called is on the stream when the communicator says that it is, and
// no sooner; a communicator that is still at it takes no more; and it does not end, be it aborted,
// while there are graphs with messages of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

/// Only its address counts.
struct CUstream_st {
  char unused = 0;
};

namespace ringlab::nccl {

struct FakeNccl {
  std::atomic<int> version = 22809;
  std::atomic<int> inits = 0;
  std::atomic<int> most_blocks = 0;  ///< what the last communicator was limited to
  std::atomic<int> aborts = 0;
  std::atomic<int> destroyed = 0;
  std::atomic<int> messages = 0;       ///< ends that were put on streams
  std::atomic<int> failing_rank = -1;  ///< its communicator has a remote error
  /// A communicator is in progress until its messages have met their other ends, as if the host had
  /// to wait for them. For devices that do their work when it is issued.
  std::atomic<bool> meets_in_exchange = false;
  std::atomic<bool> spoils = false;     ///< the first byte of what arrives
  std::atomic<int> captured = 0;        ///< ends that became part of graphs
  std::atomic<int> stuck_aborts = 0;    ///< that waited for graphs, in vain
  std::atomic<int> patience_ms = 2000;  ///< of an abort that waits for graphs
  /// Takes what is put on a stream if that is captured: `start` posts it, `is_over` when it has met
  /// or was aborted. Empty: no stream is.
  std::function<bool(const CUstream_st*, std::function<void()> start,
                     std::function<bool()> is_over)>
      capture = {};
  /// Lets graphs that nobody holds get on.
  std::function<void()> run_graphs = {};
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
