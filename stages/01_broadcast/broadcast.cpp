#include "stages/01_broadcast/broadcast.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage broadcast_stage() {
  return {.id = "01",
          .name = "broadcast",
          .idea = "Every rank gathers all keys and values and writes its scores out in full.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  broadcast::attention(r);
                });
              },
          .profile = broadcast::profile,
          .costs = gather_costs};
}

}  // namespace ringlab::stages
