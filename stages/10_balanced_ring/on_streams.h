// Stage 10 on devices: stage 08's streams, and tokens that lie where the stage says.
#pragma once

#include "stages/08_overlapped_ring/on_streams.h"
#include "stages/10_balanced_ring/balanced_ring.h"

namespace ringlab::stages::balanced_ring {

// [streams: balanced]
/// Two slots, of which the own chunk takes one. One thread knows where all keys are, so positions
/// stay at home.
template <class Element>
void run_on_streams(const DeviceRing<Element>& ring) {
  const auto tokens = [](const RankProblem<Element>& r) {
    std::vector<Positions> keys;
    for (int owner = 0; owner < r.ranks(); ++owner) {
      keys.push_back(dealt_ring::key_positions(r, owner));
    }
    return RingTokens(r.problem.mask, dealt_ring::query_positions(r), std::move(keys),
                      EmptyBlocks::skipped);
  };
  run_tiles("balanced_ring", ring, {.slots = 2, .own_in_slot = true}, tokens);
  for (RankProblem<Element>& r : ring.ranks) tell_out_positions(r);
}
// end [streams: balanced]

}  // namespace ringlab::stages::balanced_ring
