// Stage 07, slotted_ring: the own chunk stays where it lies; the others come into slots.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "stages/04_merge/merge.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/costs.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"

namespace ringlab::stages::slotted_ring {

/// K and V of one owner where they lie: in the rank's own shard or in a slot.
template <class Element>
struct Chunk {
  int owner = 0;
  std::span<const Element> k, v;
};

/// The places of chunks. Chunk `step` is the one computed on at that step; chunk 0, the own one, is
/// read and sent from the shard and needs no slot.
template <class Element, class Slot = ChunkSlot<Element>>
class Slots {
 public:
  explicit Slots(RankProblem<Element>& r) : r_(r) {
    slots_.reserve(static_cast<std::size_t>(std::min(r.options.slots, r.ranks() - 1)));
    std::int64_t held = (r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)};
    while (slots_.size() < slots_.capacity()) held += slots_.emplace_back(r).bytes();
    r.work.hold_kv(held);
  }
  int count() const { return static_cast<int>(slots_.size()); }
  std::span<Slot> all() { return slots_; }

  // [lab: places]
  Slot& slot_of(int step) {
    // [gap: slot]
    return slots_[static_cast<std::size_t>((step - 1) % count())];
    // end [gap: slot]
  }
  Chunk<Element> at(int step) {
    if (step == 0) {
      return {r_.rank(),
              {r_.k.data, static_cast<std::size_t>(r_.k.extents.size())},
              {r_.v.data, static_cast<std::size_t>(r_.v.extents.size())}};
    }
    const Slot& slot = slot_of(step);
    return {slot.owner, slot.k_values(r_), slot.v_values(r_)};
  }
  // end [lab: places]

  /// With one slot a rank cannot pass a chunk on while the next one arrives. Chunks then come
  /// straight from their owners.
  bool straight() const { return count() == 1; }
  /// The sender of chunk `step`, and the chunk that this rank sends meanwhile, and to whom.
  int source(int step) const { return r_.rank_at(straight() ? -step : -1); }
  int leaving(int step) const { return straight() ? 0 : step - 1; }
  int target(int step) const { return r_.rank_at(straight() ? step : 1); }

 private:
  RankProblem<Element>& r_;
  std::vector<Slot> slots_;
};

/// Brings chunk `step` into its slot: waits until it is there, and what leaves has left.
template <class Element>
void fetch(RankProblem<Element>& r, Slots<Element>& slots, int step) {
  // [lab: fetch]
  // [gap: fetch]
  ChunkSlot<Element>& slot = slots.slot_of(step);
  slot.owner = r.rank_at(-step);
  const Chunk<Element> leaving = slots.at(slots.leaving(step));
  const Request posted[] = {
      r.network.post_receive(slots.source(step), kKeys, slot.k_bytes(r)),
      r.network.post_receive(slots.source(step), kValues, slot.v_bytes(r)),
      r.network.post_send(slots.target(step), kKeys, std::as_bytes(leaving.k)),
      r.network.post_send(slots.target(step), kValues, std::as_bytes(leaving.v))};
  for (const Request request : posted) r.network.wait(request);
  // end [gap: fetch]
  // end [lab: fetch]
}

/// The running state takes in `chunk`.
template <class Element>
void attend(RankProblem<Element>& r, const MaskTable& mask, const Chunk<Element>& chunk, int step,
            RowStates<Element>& running) {
  const Positions& held = r.kv_layout.positions(chunk.owner);
  const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
  take_in<merge::Kernel>(r, mask.rows(positions),
                         {chunk.k.data(), chunk.v.data(), {0, held.size()}}, running);
  r.work.visit(chunk.owner, step, r.problem.mask.count(mask.queries(), held));
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  Slots<Element> slots(r);
  for (int step = 0; step < r.ranks(); ++step) {
    if (step > 0) fetch(r, slots, step);
    attend(r, mask, slots.at(step), step, running);
  }
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "The own chunk stays where it lies, and the others come into slots in a circle.",
    .costs = overlapped_ring_costs,
    .ring_traffic = true,
    .prefetches = true};

}  // namespace ringlab::stages::slotted_ring
