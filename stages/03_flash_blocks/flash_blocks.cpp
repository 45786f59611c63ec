#include "stages/03_flash_blocks/flash_blocks.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage flash_blocks_stage() {
  return {.id = "03",
          .name = "flash_blocks",
          .idea = "Tiles of queries meet tiles of keys, and no N x N array is left.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  flash_blocks::attention(r);
                });
              },
          .profile = flash_blocks::profile,
          .costs = gather_costs};
}

}  // namespace ringlab::stages
