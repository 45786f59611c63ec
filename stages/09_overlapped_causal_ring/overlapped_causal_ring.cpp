#include "stages/09_overlapped_causal_ring/overlapped_causal_ring.h"

#include "stages/common/costs.h"
#include "stages/common/device_rings.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {
namespace {

/// On GPUs one thread drives all ranks and knows all positions: they do not travel.
StageCosts overlapped_causal_ring_costs(const Problem& problem, const RunOptions& options,
                                        int rank) {
  return options.device == DeviceKind::cpu
             ? overlapped_ring_with_positions_costs(problem, options, rank)
             : overlapped_ring_costs(problem, options, rank);
}

}  // namespace

Stage overlapped_causal_ring_stage() {
  return {
      .id = "09",
      .name = "overlapped_causal_ring",
      .idea = "Slots, travelling positions, any layout, and the fast kernel: all of it at once.",
      .run =
          [](const AttentionInput& input, const RunOptions& options) {
            if (options.device == DeviceKind::cuda)
              return overlapped_causal_ring_on_gpus(input, options);
            return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
              overlapped_causal_ring::attention(r);
            });
          },
      .profile = overlapped_causal_ring::profile,
      .costs = overlapped_causal_ring_costs,
      .skips_empty_blocks = true,
      .ring_traffic = true,
      .prefetches = true,
      .tensor_cores = true};
}

}  // namespace ringlab::stages
