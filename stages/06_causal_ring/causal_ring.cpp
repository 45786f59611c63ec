#include "stages/06_causal_ring/causal_ring.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage causal_ring_stage() {
  return {.id = "06",
          .name = "causal_ring",
          .idea = "Global positions travel with the chunk, and blocks nobody sees are skipped.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  causal_ring::attention(r);
                });
              },
          .profile = causal_ring::profile,
          .costs = ring_with_positions_costs,
          .skips_empty_blocks = true,
          .ring_traffic = true};
}

}  // namespace ringlab::stages
