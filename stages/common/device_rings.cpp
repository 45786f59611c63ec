#include "stages/common/device_rings.h"

#include "optimized/ring/streams/device_kernels.h"
#include "stages/10_balanced_ring/on_streams.h"
#include "stages/12_overlapped_causal_ring/on_streams.h"
#include "stages/common/run_ranks.h"

namespace ringlab::stages {
namespace {

/// `run` on the DeviceRing of the run.
template <class Run>
RunResult run_on_gpus(const AttentionInput& input, const RunOptions& options, Run run) {
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        run(DeviceRing<Element>{ranks, moved, tile_kernel_on_streams<Element>(),
                                rows_on_streams<Element>()});
      });
}

}  // namespace

RunResult overlapped_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options,
                     [](const auto& ring) { overlapped_ring::run_on_streams(ring); });
}

RunResult balanced_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options, [](const auto& ring) { balanced_ring::run_on_streams(ring); });
}

RunResult skipping_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return run_on_gpus(input, options, [](const auto& ring) { skipping_ring::run_on_streams(ring); });
}

RunResult overlapped_causal_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  const auto find_kernels = [&]<class Element>(Element) {
    const ringlab::ring::KernelChoice choice =
        ringlab::ring::choose_kernels(input.problem, options);
    return ringlab::ring::device_kernels<Element>(choice.forward, input.problem.shape);
  };
  return run_on_gpus(input, options, [&](const auto& ring) {
    overlapped_causal_ring::run_on_streams(ring, find_kernels);
  });
}

}  // namespace ringlab::stages
