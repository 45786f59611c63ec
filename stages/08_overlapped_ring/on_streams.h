// Stage 08 on devices: the ring on streams, and the tile program of stage 06.
#pragma once

#include "stages/08_overlapped_ring/streamed_ring.h"
#include "stages/08_overlapped_ring/streamed_tiles.h"

namespace ringlab::stages {

/// All ranks of one run; `moved` counts the bytes and messages that travel between them.
template <class Element>
struct DeviceRing {
  std::span<RankProblem<Element>> ranks;
  std::span<Traffic> moved;
  StreamKernel<causal_ring::Kernel<Element>> tiles;  ///< the tile program
  StreamRows<Element> rows;                          ///< what comes before and after it

  /// Slots as the stages from 08 on have them: the own chunk stays where it is.
  SlotPlan slots() const { return {.slots = ranks.front().options.slots}; }
};

/// A ring of tile programs. `tokens_of(r)` says who holds which tokens, and what is skipped.
template <class Element, class TokensOf>
void run_tiles(const std::string& stage, const DeviceRing<Element>& ring, const SlotPlan& plan,
               TokensOf tokens_of) {
  run_streamed_ring(stage, ring.ranks, ring.moved, plan, [&](RankProblem<Element>& r, int device) {
    return StreamedTiles<Element>(r, device, tokens_of(r), ring.tiles, ring.rows);
  });
}

namespace overlapped_ring {

template <class Element>
void run_on_streams(const DeviceRing<Element>& ring) {
  run_tiles("overlapped_ring", ring, ring.slots(),
            [](const RankProblem<Element>& r) { return tokens_of(r, EmptyBlocks::computed); });
}

}  // namespace overlapped_ring
}  // namespace ringlab::stages
