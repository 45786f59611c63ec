// Stage 19, documents_and_windows: a chunk goes to the ranks that see some of it, and to no other.
#pragma once

#include <algorithm>
#include <vector>

#include "stages/16_bidirectional/bidirectional.h"

namespace ringlab::stages::documents_and_windows {

using bidirectional::attend, bidirectional::own_chunk, bidirectional::post_send,
    bidirectional::post_receive;

/// True when a query of `rank` sees a key of `owner`. Mask and layouts are known to all, so that
/// both ends of a message know whether there is one.
template <class Element>
bool needs(const RankProblem<Element>& r, int rank, int owner) {
  // [lab: needs]
  // [gap: needs]
  const Positions& queries = r.q_layout.positions(rank);
  const Positions& keys = r.kv_layout.positions(owner);
  return r.problem.mask.count(queries, keys) > 0;
  // end [gap: needs]
  // end [lab: needs]
}

/// At hop h a rank takes the chunk of the rank h before it, straight from there, and gives its own
/// to the one h after it: either of it, both, or nothing at all.
template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  std::int64_t held = (r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)};
  auto slots = bidirectional::make_slots(r, std::min(1, r.ranks() - 1), held);
  r.work.hold_kv(held);
  // [lab: hops]
  if (needs(r, r.rank(), r.rank())) attend(r, mask, own_chunk(r), 0, running);
  for (int hop = 1, step = 0; hop < r.ranks(); ++hop) {
    std::vector<Request> posted;
    // [gap: hop]
    const int owner = r.rank_at(-hop), reader = r.rank_at(hop);
    const bool takes = needs(r, r.rank(), owner), gives = needs(r, reader, r.rank());
    if (gives) post_send(r, reader, own_chunk(r), posted);
    // end [gap: hop]
    if (takes) {
      slots.front().owner = owner;
      post_receive(r, owner, slots.front(), posted);
    }
    for (const Request request : posted) r.network.wait(request);
    if (!takes) continue;
    const ChunkSlot<Element>& slot = slots.front();
    attend(r, mask, {slot.owner, slot.k_values(r), slot.v_values(r)}, ++step, running);
  }
  // end [lab: hops]
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "A chunk goes to the ranks that see some of it: whole hops are skipped.",
    .costs = needed_chunks_costs,
    .skips_empty_blocks = true};

}  // namespace ringlab::stages::documents_and_windows
