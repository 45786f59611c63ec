// Stages 07 to 09 on devices, over kernels that come from outside.
#pragma once

#include "stages/08_balanced_ring/balanced_ring.h"
#include "stages/common/streamed_fast.h"
#include "stages/common/streamed_ring.h"
#include "stages/common/streamed_tiles.h"

namespace ringlab::stages {

/// All ranks of one run; what they have moved is counted in `moved`.
template <class Element>
struct DeviceRing {
  std::span<RankProblem<Element>> ranks;
  std::span<Traffic> moved;
  StreamKernel<ChunkKernel<Element>> tiles;  ///< the tile program
  StreamRows<Element> rows;                  ///< what comes before and after it
};

template <class Element>
void run_overlapped_ring(const DeviceRing<Element>& ring) {
  const SlotPlan plan{.slots = ring.ranks.front().options.slots};
  run_streamed_ring("overlapped_ring", ring.ranks, ring.moved, plan,
                    [&](RankProblem<Element>& r, int device) {
                      return StreamedTiles<Element>(r, device, tokens_of(r, EmptyBlocks::computed),
                                                    ring.tiles, ring.rows);
                    });
}

// [streams: balanced]
/// Two slots, of which the own chunk takes one. The tokens are where the stage says.
template <class Element>
void run_balanced_ring(const DeviceRing<Element>& ring) {
  const SlotPlan plan{.slots = 2, .own_in_slot = true};
  run_streamed_ring("balanced_ring", ring.ranks, ring.moved, plan,
                    [&](RankProblem<Element>& r, int device) {
                      return StreamedTiles<Element>(r, device, balanced_ring::ring_tokens(r),
                                                    ring.tiles, ring.rows);
                    });
  for (RankProblem<Element>& r : ring.ranks) balanced_ring::tell_out_positions(r);
}
// end [streams: balanced]

/// Stage 09 where the fast kernels take the problem (overlapped_causal_ring::takes_fast_kernel).
template <class Element>
void run_with_fast_kernel(const DeviceRing<Element>& ring,
                          const ringlab::ring::DeviceKernels<Element>& kernels) {
  const SlotPlan plan{.slots = ring.ranks.front().options.slots};
  run_streamed_ring("overlapped_causal_ring", ring.ranks, ring.moved, plan,
                    [&](RankProblem<Element>& r, int device) {
                      return StreamedFast<Element>(r, device, tokens_of(r, EmptyBlocks::skipped),
                                                   kernels);
                    });
}

/// Stage 09 where they do not.
template <class Element>
void run_with_tiles(const DeviceRing<Element>& ring) {
  const SlotPlan plan{.slots = ring.ranks.front().options.slots};
  run_streamed_ring("overlapped_causal_ring", ring.ranks, ring.moved, plan,
                    [&](RankProblem<Element>& r, int device) {
                      return StreamedTiles<Element>(r, device, tokens_of(r, EmptyBlocks::skipped),
                                                    ring.tiles, ring.rows);
                    });
}

}  // namespace ringlab::stages
