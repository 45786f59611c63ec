// The messages of a rank of run_rank_on_device() over NCCL: one communicator for chunks, one for
// sums. Compiled where NCCL is found.
#pragma once

#include "optimized/ring/cuda_messages.h"
#include "optimized/transport/nccl_group.h"

namespace ringlab::ring {

class NcclLinks final : public DeviceLinks {
 public:
  /// Collective; `place.device` names what `device` is the number of. Each `tell_all` is used once.
  /// `place.deadline` is also that of wait(), and so of both passes together.
  NcclLinks(const nccl::GroupPlace& place, int device, const TellAll& tell_all_for_chunks,
            const TellAll& tell_all_for_sums);

  void exchange(StreamKind kind, std::span<const DeviceMessage> messages, cuda::Stream stream,
                const std::string& operation) override;
  void wait(cuda::Stream stream) override;
  void abort() noexcept override;

 private:
  /// After an error neither communicator may keep the device busy.
  template <class Body>
  void guarded(Body body);

  const int device_;
  nccl::Group chunks_, sums_;
};

}  // namespace ringlab::ring
