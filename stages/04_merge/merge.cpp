#include "stages/04_merge/merge.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage merge_stage() {
  return {.id = "04",
          .name = "merge",
          .idea = "Every chunk of keys gives a partial answer, and a tree merges them into one.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  merge::attention(r);
                });
              },
          .profile = merge::profile,
          .costs = gather_costs};
}

}  // namespace ringlab::stages
