// Stage 11, skipping_ring: positions go through the slots; a skipped chunk is passed on.
#pragma once

#include <span>
#include <vector>

#include "stages/06_causal_ring/causal_ring.h"
#include "stages/08_overlapped_ring/overlapped_ring.h"

namespace ringlab::stages::skipping_ring {

/// Stage 08's slot, and the tokens that the rows of its chunk are.
template <class Element>
struct Slot : overlapped_ring::Slot<Element> {
  using overlapped_ring::Slot<Element>::Slot;
  std::vector<PositionRun> runs;
};

/// Stage 08's stream of chunks; their positions go the same way.
template <class Element>
class ChunkStream : public overlapped_ring::ChunkStream<Element, Slot<Element>> {
  using Base = overlapped_ring::ChunkStream<Element, Slot<Element>>;
  using Base::r_, Base::slots_;

 public:
  using Base::Base;

  // [lab: travel]
  const std::vector<PositionRun>& runs_of(int step) {
    return step == 0 ? r_.kv_layout.positions(r_.rank()).runs() : slots_.slot_of(step).runs;
  }
  void expect(int step) {
    Base::expect(step);
    Slot<Element>& slot = slots_.slot_of(step);
    // The number of runs is agreed beforehand, as all sizes are; the runs themselves travel.
    slot.runs.resize(r_.kv_layout.positions(slot.owner).runs().size());
    slot.arriving.push_back(r_.network.post_receive(slots_.source(step), kPositions,
                                                    std::as_writable_bytes(std::span(slot.runs))));
  }
  void pass_on(int step) {
    Base::pass_on(step);
    if (step + 1 == r_.ranks()) return;
    // [gap: travel]
    const std::vector<PositionRun>& runs = runs_of(slots_.leaving(step + 1));
    // end [gap: travel]
    this->leaving(step).push_back(
        r_.network.post_send(slots_.target(step + 1), kPositions, std::as_bytes(std::span(runs))));
  }
  // end [lab: travel]
};

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  ChunkStream<Element> chunks(r);
  for (int step = 1; step <= chunks.slots(); ++step) chunks.expect(step);
  for (int step = 0; step < r.ranks(); ++step) {
    chunks.await(step);
    chunks.pass_on(step);
    const slotted_ring::Chunk<Element> chunk = chunks.at(step);
    causal_ring::attend(r, mask,
                        {chunk.owner, chunk.k.data(), chunk.v.data(), chunks.runs_of(step)}, step,
                        running);
    if (chunks.free_slot(step)) chunks.expect(step + chunks.slots());
  }
  chunks.drain();
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

/// On GPUs one thread drives all ranks and knows all positions: they do not travel.
inline StatedCosts costs(const Problem& problem, const RunOptions& options, int rank) {
  return options.device == DeviceKind::cpu
             ? overlapped_ring_with_positions_costs(problem, options, rank)
             : overlapped_ring_costs(problem, options, rank);
}

inline constexpr StageFacts kFacts{
    .idea = "Positions travel through the slots, and a chunk that is skipped is passed on.",
    .costs = costs,
    .skips_empty_blocks = true,
    .ring_traffic = true,
    .prefetches = true,
    .on_gpus = skipping_ring_on_gpus};

}  // namespace ringlab::stages::skipping_ring
