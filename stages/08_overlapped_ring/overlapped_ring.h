// Stage 08, overlapped_ring: chunks are fetched into slots while earlier ones are computed on.
#pragma once

#include <span>
#include <vector>

#include "stages/07_slotted_ring/slotted_ring.h"
#include "stages/common/device_rings.h"

namespace ringlab::stages::overlapped_ring {

using slotted_ring::Chunk, slotted_ring::Slots, slotted_ring::attend;

/// A place for a chunk of somebody else, and what is under way into it and out of it.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<Request> arriving, leaving;
};

/// The chunks as they come by, chunk `step` at that step.
template <class Element, class Place = Slot<Element>>
class ChunkStream {
 public:
  explicit ChunkStream(RankProblem<Element>& r) : r_(r), slots_(r) {}
  int slots() const { return slots_.count(); }
  Chunk<Element> at(int step) { return slots_.at(step); }

  // [lab: arrivals]
  /// Posts the receives of chunk `step`. Its slot must be free.
  void expect(int step) {
    Place& slot = slots_.slot_of(step);
    slot.owner = r_.rank_at(-step);
    const int from = slots_.source(step);
    slot.arriving = {r_.network.post_receive(from, kKeys, slot.k_bytes(r_)),
                     r_.network.post_receive(from, kValues, slot.v_bytes(r_))};
  }

  /// Waits until chunk `step` is there.
  void await(int step) {
    if (step == 0) return;
    // [gap: await]
    for (const Request request : slots_.slot_of(step).arriving) r_.network.wait(request);
    // end [gap: await]
  }

  // end [lab: arrivals]
  // [lab: departures]
  /// Posts the sends of one step: what the next rank computes on at the step after it.
  void pass_on(int step) {
    if (step + 1 == r_.ranks()) return;
    const Chunk<Element> chunk = at(slots_.leaving(step + 1));
    const int to = slots_.target(step + 1);
    leaving(step).push_back(r_.network.post_send(to, kKeys, std::as_bytes(chunk.k)));
    leaving(step).push_back(r_.network.post_send(to, kValues, std::as_bytes(chunk.v)));
  }

  /// Chunk `step` was computed on. Waits until nobody reads its slot; whether a chunk comes there.
  bool free_slot(int step) {
    if (step == 0 || step + slots() >= r_.ranks()) return false;
    // [gap: reuse]
    wait_for_sends(slots_.slot_of(step).leaving);
    // end [gap: reuse]
    return true;
  }

  /// Waits for every send that is still under way: its memory belongs to this rank.
  void drain() {
    wait_for_sends(own_leaving_);
    for (Place& slot : slots_.all()) wait_for_sends(slot.leaving);
  }
  // end [lab: departures]

 protected:
  /// The sends of what is passed on at `step`.
  std::vector<Request>& leaving(int step) {
    const int chunk = slots_.leaving(step + 1);
    return chunk == 0 ? own_leaving_ : slots_.slot_of(chunk).leaving;
  }
  void wait_for_sends(std::vector<Request>& requests) {
    for (const Request request : requests) r_.network.wait(request);
    requests.clear();
  }

  RankProblem<Element>& r_;
  Slots<Element, Place> slots_;
  std::vector<Request> own_leaving_;
};

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  ChunkStream<Element> chunks(r);
  // [lab: steps]
  for (int step = 1; step <= chunks.slots(); ++step) chunks.expect(step);
  for (int step = 0; step < r.ranks(); ++step) {
    // [gap: step]
    chunks.await(step);
    chunks.pass_on(step);
    attend(r, mask, chunks.at(step), step, running);
    if (chunks.free_slot(step)) chunks.expect(step + chunks.slots());
    // end [gap: step]
  }
  chunks.drain();
  // end [lab: steps]
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Chunks are fetched into slots while earlier ones are computed on.",
    .costs = overlapped_ring_costs,
    .ring_traffic = true,
    .prefetches = true,
    .on_gpus = overlapped_ring_on_gpus};

}  // namespace ringlab::stages::overlapped_ring
