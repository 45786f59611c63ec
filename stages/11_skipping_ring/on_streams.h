// Stage 11 on devices: stage 08's streams; blocks that nobody sees are skipped.
#pragma once

#include <string>

#include "stages/08_overlapped_ring/on_streams.h"

namespace ringlab::stages::skipping_ring {

/// Runs stage 11, and stage 12 where its fast kernels do not take the problem.
template <class Element>
void run_on_streams(const DeviceRing<Element>& ring, const std::string& stage = "skipping_ring") {
  run_tiles(stage, ring, ring.slots(),
            [](const RankProblem<Element>& r) { return tokens_of(r, EmptyBlocks::skipped); });
}

}  // namespace ringlab::stages::skipping_ring
