// Stage 05, ring: K and V travel from neighbour to neighbour; the running state stays at home.
#pragma once

#include <optional>
#include <vector>

#include "stages/04_merge/merge.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/costs.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"

namespace ringlab::stages::ring {

/// One hop: posts the chunk in `leaving` to one neighbour and the other's chunk into `arriving`.
template <class Element, class T>
std::vector<Request> post_hop(RankProblem<Element>& r, ChunkSlot<T>& leaving,
                              ChunkSlot<T>& arriving) {
  const int to = r.rank_at(1), from = r.rank_at(-1);
  std::vector<Request> posted;
  // [lab: exchange]
  // [gap: exchange]
  posted.push_back(r.network.post_send(to, kKeys, leaving.k_bytes(r)));
  posted.push_back(r.network.post_send(to, kValues, leaving.v_bytes(r)));
  posted.push_back(r.network.post_receive(from, kKeys, arriving.k_bytes(r)));
  posted.push_back(r.network.post_receive(from, kValues, arriving.v_bytes(r)));
  // end [gap: exchange]
  // end [lab: exchange]
  return posted;
}

/// Calls meet(slot, hop) for every chunk: at hop 0 the own one, and then as they come by.
template <class Element, class Meet>
void circulate(RankProblem<Element>& r, Meet meet) {
  const int ranks = r.ranks();
  // [lab: hops]
  ChunkSlot<Element> here(r);
  std::optional<ChunkSlot<Element>> arriving;  // a ring of one rank has no hop
  if (ranks > 1) arriving.emplace(r);
  r.work.hold_kv((ranks > 1 ? 2 : 1) * here.bytes());
  here.fill_with_own(r);
  // [gap: hops]
  for (int hop = 0; hop < ranks; ++hop) {
    if (hop > 0) {
      arriving->owner = r.rank_at(-hop);
      for (const Request request : post_hop(r, here, *arriving)) r.network.wait(request);
      std::swap(here, *arriving);
    }
    meet(here, hop);
  }
  // end [gap: hops]
  // end [lab: hops]
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  circulate(r, [&](const ChunkSlot<Element>& slot, int hop) {
    const Positions& held = r.kv_layout.positions(slot.owner);
    const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
    take_in<merge::Kernel>(r, mask.rows(positions),
                           {slot.k.data(), slot.v.data(), {0, held.size()}}, running);
    r.work.visit(slot.owner, hop, r.problem.mask.count(mask.queries(), held));
  });
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Keys and values travel from neighbour to neighbour; queries and state stay.",
    .costs = ring_costs,
    .ring_traffic = true};

}  // namespace ringlab::stages::ring
