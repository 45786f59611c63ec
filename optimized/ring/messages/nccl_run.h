// One rank of a ring of processes over NCCL, from finding the others to the result.
//
// Tests run it with an NCCL and devices made of threads and memory; on GPUs only runs of one rank
// have been tested.
#pragma once

#include <utility>

#include "optimized/ring/messages/cuda_messages.h"
#include "optimized/ring/messages/rank_device.h"
#include "optimized/ring/process_job.h"
#include "optimized/transport/tell_all.h"

namespace ringlab::ring {

/// Exchanges texts of any kind among all ranks over the job's network.
TellAll tell_all_of(const ProcessJob& job);

/// One rank on its device, as OverLinks, with gradients as options.deterministic says, after the
/// links have been tried. The ranks of the network, which must be options.ranks, have agreed before
/// (see agreement.h) on all that must be the same. options.timeout_s is the deadline of connecting,
/// of every exchange, and of all work on the device together.
template <class Element>
class OneNcclRank final : public Place {
 public:
  OneNcclRank(DeviceKernels<Element> kernels, ProcessJob job, RankDevice device)
      : kernels_(std::move(kernels)), job_(std::move(job)), device_(std::move(device)) {}
  void check(const Problem& problem, const RunOptions& options) const override;
  RunSummary run(const AnyRun& run) const override;

 private:
  const DeviceKernels<Element> kernels_;
  const ProcessJob job_;
  const RankDevice device_;
};

}  // namespace ringlab::ring
