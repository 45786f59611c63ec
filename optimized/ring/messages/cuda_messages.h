// One rank of a ring of processes: its message program on the streams of its device.
//
// The caller chooses what carries the messages: NCCL (optimized/transport/nccl/nccl_group.h), or a
// stand-in of tests. No CUDA header is seen here.
#pragma once

#include <span>

#include "optimized/ring/messages/message_program.h"
#include "optimized/ring/streams/cuda_streams.h"

namespace ringlab::ring {

/// One end of a message, in memory of the rank's device.
struct DeviceMessage {
  MessageSide side = MessageSide::send;
  int peer = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
};

/// Connects a rank with all others, once for chunks and once for sums. After an error of exchange()
/// or wait() the owner of memory in use there calls abort() before it frees the memory.
class DeviceLinks {
 public:
  virtual ~DeviceLinks() = default;
  /// Puts all messages on `stream`, as one group; errors name `operation`. If the stream is being
  /// captured, the messages become part of the graph, and travel whenever the graph is launched.
  virtual void exchange(StreamKind kind, std::span<const DeviceMessage> messages,
                        cuda::Stream stream, const std::string& operation) = 0;
  /// Waits until all work on the stream has ended; an error for a lost peer or a missed deadline.
  virtual void wait(cuda::Stream stream) = 0;
  /// Ends work on the device that would wait for other ranks for ever; every later call is an
  /// error.
  virtual void abort() noexcept = 0;
};

struct MessageRun {
  int rank = 0;
  int device = 0;
  Repeatable gradients = Repeatable::no;
  IssueAs issue_as = IssueAs::streams;  ///< the same for all ranks
  int launches = 1;                     ///< as DeviceRun::launches, and the same for all ranks
  double grace_s = 10;                  ///< for work on the device when the run was broken off
};

/// One rank on its device, connected by `links` and with kernels of the caller's choice: as
/// OnStreams for that rank. All ranks must run the same problem and options, and want gradients or
/// not alike. Source and sink are called once, for this rank. On an error the captured graph is let
/// go, as NCCL's abort waits for it, and the links are aborted, before memory of the device is
/// freed, which would wait for work there. Work that has not ended MessageRun::grace_s after that
/// is DeviceStuck with the first error in it, and its memory is not freed.
template <class Element>
class OverLinks final : public Place {
 public:
  OverLinks(DeviceKernels<Element> kernels, DeviceLinks& links, const MessageRun& run)
      : kernels_(std::move(kernels)), links_(links), run_(run) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  const DeviceKernels<Element> kernels_;
  DeviceLinks& links_;
  const MessageRun run_;
};

}  // namespace ringlab::ring
