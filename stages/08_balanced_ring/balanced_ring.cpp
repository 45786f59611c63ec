#include "stages/08_balanced_ring/balanced_ring.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage balanced_ring_stage() {
  return {.id = "08",
          .name = "balanced_ring",
          .idea = "Zigzag and striped layouts give every rank the same work at every step.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  balanced_ring::attention(r);
                });
              },
          .profile = balanced_ring::profile,
          .costs = ring_with_positions_costs,
          .skips_empty_blocks = true,
          .ring_traffic = true};
}

}  // namespace ringlab::stages
