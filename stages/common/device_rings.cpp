#include "stages/common/device_rings.h"

#include "stages/common/run_ranks.h"
#include "stages/common/streamed_tiles.h"

namespace ringlab::stages {

RunResult run_overlapped_ring_on_devices(const AttentionInput& input, const RunOptions& options) {
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        run_streamed_ring(ranks, moved, {.slots = options.slots},
                          [](RankProblem<Element>& r, int device) {
                            return StreamedTiles<Element>(r, device, tokens_of(r),
                                                          chunk_kernel_on_streams<Element>());
                          });
      });
}

}  // namespace ringlab::stages
