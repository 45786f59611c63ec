// The messages of a rank of OverLinks over NCCL: one communicator for chunks, one for sums.
// Compiled where NCCL is found.
#pragma once

#include "optimized/ring/messages/cuda_messages.h"
#include "optimized/transport/nccl/nccl_group.h"

namespace ringlab::ring {

class NcclLinks final : public DeviceLinks {
 public:
  /// Collective; `place.device` is the name of device number `device`. Each `tell_all` is used
  /// once. `place.deadline` is also the deadline of wait(), and so of both passes together.
  NcclLinks(const nccl::GroupPlace& place, int device, const TellAll& tell_all_for_chunks,
            const TellAll& tell_all_for_sums);
  /// Aborts both communicators after an error of either.
  ~NcclLinks() override;

  void exchange(StreamKind kind, std::span<const DeviceMessage> messages, cuda::Stream stream,
                const std::string& operation) override;
  void wait(cuda::Stream stream) override;
  /// Aborts both at the same time: a graph, or memory, that one waits for may wait for the other.
  void abort() noexcept override;

 private:
  /// Calls `body`; after an error neither communicator is used again.
  template <class Body>
  void guarded(Body body);

  const int device_;
  nccl::Group chunks_, sums_;
  bool has_failed_ = false;
};

}  // namespace ringlab::ring
