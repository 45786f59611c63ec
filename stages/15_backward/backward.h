// Stage 15, backward: dQ stays; dK and dV travel home with K and V.
#pragma once

#include "stages/14_straight_backward/straight_backward.h"

namespace ringlab::stages::backward {

using straight_backward::Sums, straight_backward::row_deltas, straight_backward::add_gradients,
    straight_backward::store;

/// The sums follow their chunk, one computation later: they are complete only then. At hop `hop`
/// those in `sums` go to the next rank, and what the one before has added up comes.
template <class Element>
void pass_on(RankProblem<Element>& r, int hop, Sums<Element>& sums) {
  Sums<Element> arriving(r);
  sums.owner = r.rank_at(-hop), arriving.owner = r.rank_at(-hop - 1);
  for (const Request request : stages::ring::post_hop(r, sums, arriving)) r.network.wait(request);
  std::swap(sums, arriving);
}

/// The second trip: P - 1 hops for K and V, P for their gradients, the last of which brings them
/// home.
template <class Element>
void backward_trip(RankProblem<Element>& r) {
  const MeteredBuffer<Accumulator<Element>> delta = row_deltas(r);
  MeteredBuffer<Accumulator<Element>> dq(r.memory, r.q.extents.size());
  // [lab: trip]
  Sums<Element> sums(r);
  // [gap: home]
  stages::ring::circulate(r, [&](const ChunkSlot<Element>& slot, int hop) {
    add_gradients(r, slot, delta, dq, sums);
    if (r.ranks() > 1) pass_on(r, hop, sums);
  });
  // end [gap: home]
  // [gap: scale]
  store(dq, r.problem.scale, r.dq);
  store(sums.k, r.problem.scale, r.dk);
  store(sums.v, 1.0, r.dv);
  // end [gap: scale]
  // end [lab: trip]
}

template <class Element>
void attention(RankProblem<Element>& r) {
  pairwise_ring::attention(r);
  if (r.begin_backward()) backward_trip(r);
}

/// One rescale per key at most.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

inline constexpr StageFacts kFacts{.idea = "dQ stays; dK and dV travel home with K and V.",
                                   .costs = ring_costs,
                                   .skips_empty_blocks = true,
                                   .ring_traffic = true,
                                   .backward = true,
                                   .cpu_only = true};

}  // namespace ringlab::stages::backward
