#include "stages/05_ring/ring.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage ring_stage() {
  return {.id = "05",
          .name = "ring",
          .idea = "Keys and values travel from neighbour to neighbour; queries and state stay.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  ring::attention(r);
                });
              },
          .profile = ring::profile,
          .costs = ring_costs,
          .ring_traffic = true};
}

}  // namespace ringlab::stages
