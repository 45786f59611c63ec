#include "stages/08_balanced_ring/balanced_ring.h"

#include "stages/common/costs.h"
#include "stages/common/device_rings.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {
namespace {

/// On GPUs one thread drives all ranks and knows all positions: they do not travel.
StageCosts balanced_ring_costs(const Problem& problem, const RunOptions& options, int rank) {
  return options.device == DeviceKind::cpu ? ring_with_positions_costs(problem, options, rank)
                                           : ring_costs(problem, options, rank);
}

}  // namespace

Stage balanced_ring_stage() {
  return {.id = "08",
          .name = "balanced_ring",
          .idea = "Zigzag and striped layouts give every rank the same work at every step.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                if (options.device == DeviceKind::cuda)
                  return balanced_ring_on_gpus(input, options);
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  balanced_ring::attention(r);
                });
              },
          .profile = balanced_ring::profile,
          .costs = balanced_ring_costs,
          .skips_empty_blocks = true,
          .ring_traffic = true};
}

}  // namespace ringlab::stages
