#include "stages/common/device_rings.h"

#include <type_traits>

#include "optimized/ring/streams/device_kernels.h"
#include "stages/09_overlapped_causal_ring/overlapped_causal_ring.h"
#include "stages/common/run_ranks.h"
#include "stages/common/streamed_stages.h"

namespace ringlab::stages {
namespace {

/// `run` on the DeviceRing of the run.
template <class Run>
RunResult run_on_gpus(const AttentionInput& input, const RunOptions& options, Run run) {
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        run(DeviceRing<Element>{ranks, moved, chunk_kernel_on_streams<Element>(),
                                rows_on_streams<Element>()});
      });
}

}  // namespace

RunResult overlapped_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options, [](const auto& ring) { run_overlapped_ring(ring); });
}

RunResult balanced_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options, [](const auto& ring) { run_balanced_ring(ring); });
}

RunResult overlapped_causal_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options, [&]<class Element>(const DeviceRing<Element>& ring) {
    if constexpr (std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>) {
      if (overlapped_causal_ring::takes_fast_kernel(input.problem, options)) {
        const ringlab::ring::KernelChoice choice =
            ringlab::ring::choose_kernels(input.problem, options);
        return run_with_fast_kernel(
            ring, ringlab::ring::device_kernels<Element>(choice.forward, input.problem.shape));
      }
    }
    run_with_tiles(ring);
  });
}

}  // namespace ringlab::stages
