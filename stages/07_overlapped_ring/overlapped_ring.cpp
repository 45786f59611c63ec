#include "stages/07_overlapped_ring/overlapped_ring.h"

#include "stages/common/costs.h"
#include "stages/common/device_rings.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {

Stage overlapped_ring_stage() {
  return {.id = "07",
          .name = "overlapped_ring",
          .idea = "Chunks are fetched into slots while earlier ones are computed on.",
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                if (options.device == DeviceKind::cuda) {
                  return overlapped_ring_on_gpus(input, options);
                }
                return run_ranks(input, options, []<class Element>(RankProblem<Element>& r) {
                  overlapped_ring::attention(r);
                });
              },
          .profile = overlapped_ring::profile,
          .costs = overlapped_ring_costs,
          .ring_traffic = true,
          .prefetches = true};
}

}  // namespace ringlab::stages
