// Stage 06, causal_ring: positions travel with the chunk, and blocks that nobody sees are skipped.
#pragma once

#include <optional>
#include <vector>

#include "stages/04_merge/merge.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/costs.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"

namespace ringlab::stages::causal_ring {

/// The keys of the current chunk that a row sees. Both sides are asked for by global position.
struct VisibleKeys : MaskRows {
  bool all_visible = false;  ///< no query of this rank is kept from any key of the chunk

  RINGLAB_HD bool allows(std::int64_t row, std::int64_t key) const {
    if (all_visible) return true;
    // [lab: sees]
    // [gap: sees]
    const std::int64_t position = key_positions[key];
    const KeyInterval seen = visible[row];
    return seen.begin <= position && position < seen.end && bits_allow(row, position);
    // end [gap: sees]
    // end [lab: sees]
  }
};

template <class Element>
using Kernel = merge::Kernel<Element, VisibleKeys>;

/// A chunk and the tokens that its rows are: they travel together.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<PositionRun> runs;
};

/// One hop: posts the chunk in `leaving` to one neighbour and the other's chunk into `arriving`.
template <class Element>
std::vector<Request> post_hop(RankProblem<Element>& r, Slot<Element>& leaving,
                              Slot<Element>& arriving) {
  const int to = r.rank_at(1), from = r.rank_at(-1);
  std::vector<Request> posted;
  posted.push_back(r.network.post_send(to, kPositions, std::as_bytes(std::span(leaving.runs))));
  posted.push_back(
      r.network.post_receive(from, kPositions, std::as_writable_bytes(std::span(arriving.runs))));
  posted.push_back(r.network.post_send(to, kKeys, leaving.k_bytes(r)));
  posted.push_back(r.network.post_send(to, kValues, leaving.v_bytes(r)));
  posted.push_back(r.network.post_receive(from, kKeys, arriving.k_bytes(r)));
  posted.push_back(r.network.post_receive(from, kValues, arriving.v_bytes(r)));
  return posted;
}

/// A chunk where it lies.
template <class Element>
struct Chunk {
  int owner = 0;
  const Element* k = nullptr;
  const Element* v = nullptr;
  const std::vector<PositionRun>& runs;
};

/// The running state takes in `chunk`, unless no query sees anything of it.
template <class Element>
void attend(RankProblem<Element>& r, const MaskTable& mask, const Chunk<Element>& chunk, int hop,
            RowStates<Element>& running) {
  // [lab: skip]
  // [gap: positions]
  const Positions held(chunk.runs);
  // end [gap: positions]
  // [gap: skip]
  const Coverage coverage = r.problem.mask.classify(mask.queries(), held);
  if (coverage == Coverage::empty) return;
  const bool all_visible = coverage == Coverage::full;
  // end [gap: skip]
  const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
  take_in<merge::Kernel>(r, VisibleKeys{mask.rows(positions), all_visible},
                         {chunk.k, chunk.v, {0, held.size()}}, running);
  r.work.visit(chunk.owner, hop, r.problem.mask.count(mask.queries(), held));
  // end [lab: skip]
}

/// The queries of `mask` meet every chunk. `runs_of(owner)` says which tokens an owner's keys are:
/// read for this rank's own chunk; of others only the number of runs is, which is agreed
/// beforehand, as all sizes are.
template <class Element, class RunsOf>
void circulate(RankProblem<Element>& r, const MaskTable& mask, RunsOf runs_of) {
  const int ranks = r.ranks();
  RowStates<Element> running(r);
  Slot<Element> here(r);
  std::optional<Slot<Element>> arriving;  // a ring of one rank has no hop
  if (ranks > 1) arriving.emplace(r);
  r.work.hold_kv((ranks > 1 ? 2 : 1) * here.bytes());
  here.fill_with_own(r);
  here.runs = runs_of(r.rank());
  for (int hop = 0; hop < ranks; ++hop) {
    if (hop > 0) {
      arriving->owner = r.rank_at(-hop);
      arriving->runs.resize(runs_of(arriving->owner).size());
      for (const Request request : post_hop(r, here, *arriving)) r.network.wait(request);
      std::swap(here, *arriving);
    }
    attend(r, mask, {here.owner, here.k.data(), here.v.data(), here.runs}, hop, running);
  }
  merge::finish(r, running);
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  circulate(r, mask, [&](int owner) { return r.kv_layout.positions(owner).runs(); });
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Global positions travel with the chunk, and blocks nobody sees are skipped.",
    .costs = ring_with_positions_costs,
    .skips_empty_blocks = true,
    .ring_traffic = true};

}  // namespace ringlab::stages::causal_ring
