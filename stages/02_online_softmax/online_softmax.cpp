#include "stages/02_online_softmax/online_softmax.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage online_softmax_stage() {
  return {.id = "02",
          .name = "online_softmax",
          .idea = "One pass over the keys with a running maximum, sum and accumulator.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  online_softmax::attention(r);
                });
              },
          .profile = online_softmax::profile,
          .costs = gather_costs};
}

}  // namespace ringlab::stages
