// One rank of a ring of processes over NCCL, from finding the others to the result.
//
// Has run on no GPU yet. Tests run it with a NCCL and devices that are threads and memory.
#pragma once

#include <functional>
#include <string>

#include "optimized/ring/messages/cuda_messages.h"
#include "optimized/ring/messages/rank_device.h"
#include "optimized/transport/communicator.h"

namespace ringlab::ring {

/// What a rank needs besides its device.
struct NcclJob {
  Communicator& network;  ///< connects the same ranks; carries the ids of NCCL's communicators
  /// Asked while the device works: throws when another rank has failed. May be empty.
  std::function<void(const std::string& operation)> check_others = {};
};

/// Texts of all ranks over the job's network, for whatever they are.
TellAll tell_all_of(const NcclJob& job);

/// As run_rank_on_device(), with gradients as options.deterministic says, after the links have been
/// tried. The ranks of the network, which must be options.ranks, have agreed before (see
/// agreement.h) on all that must be the same. options.timeout_s is the deadline of connecting, of
/// every exchange, and of all that is on the device together.
template <class Element>
RankStats run_rank_over_nccl(const Problem& problem, const RunOptions& options,
                             const NativeEnds<Element>& ends, const DeviceKernels<Element>& kernels,
                             const NcclJob& job, const RankDevice& device);

}  // namespace ringlab::ring
