// Stage 16, bidirectional: two half rings, so that chunks come from both neighbours at once.
#pragma once

#include <algorithm>
#include <vector>

#include "stages/07_slotted_ring/slotted_ring.h"

namespace ringlab::stages::bidirectional {

using slotted_ring::Chunk, slotted_ring::attend;

/// The own chunk is read and sent where it lies, in the shard.
template <class Element>
Chunk<Element> own_chunk(const RankProblem<Element>& r) {
  return {r.rank(),
          {r.k.data, static_cast<std::size_t>(r.k.extents.size())},
          {r.v.data, static_cast<std::size_t>(r.v.extents.size())}};
}

template <class Element>
void post_send(RankProblem<Element>& r, int to, const Chunk<Element>& chunk,
               std::vector<Request>& posted) {
  posted.push_back(r.network.post_send(to, kKeys, std::as_bytes(chunk.k)));
  posted.push_back(r.network.post_send(to, kValues, std::as_bytes(chunk.v)));
}

template <class Element>
void post_receive(RankProblem<Element>& r, int from, ChunkSlot<Element>& slot,
                  std::vector<Request>& posted) {
  posted.push_back(r.network.post_receive(from, kKeys, slot.k_bytes(r)));
  posted.push_back(r.network.post_receive(from, kValues, slot.v_bytes(r)));
}

/// Places for `count` chunks; `held` counts what a rank holds, in bytes.
template <class Element>
std::vector<ChunkSlot<Element>> make_slots(RankProblem<Element>& r, int count, std::int64_t& held) {
  std::vector<ChunkSlot<Element>> slots;
  while (std::ssize(slots) < count) held += slots.emplace_back(r).bytes();
  return slots;
}

/// The chunks that travel one way: along the direction (way 1) or against it (way -1). Chunk `hop`
/// comes with exchange `hop`; chunk 0 is the own one.
template <class Element>
class HalfRing {
 public:
  HalfRing(RankProblem<Element>& r, int way, std::int64_t& held)
      : r_(r), way_(way), slots_(make_slots(r, std::min(2, exchanges()), held)) {}

  // [lab: half_ring]
  /// Half of the way round. With an even number of ranks one chunk is as far on either side: it
  /// comes along the direction only.
  int exchanges() const {
    // [gap: half]
    return way_ > 0 ? r_.ranks() / 2 : (r_.ranks() - 1) / 2;
    // end [gap: half]
  }

  Chunk<Element> at(int hop) {
    if (hop == 0) return own_chunk(r_);
    const ChunkSlot<Element>& slot = slot_of(hop);
    return {slot.owner, slot.k_values(r_), slot.v_values(r_)};
  }

  /// One exchange: chunk `hop` comes in from one side, the one before goes on to the other.
  void post(int hop, std::vector<Request>& posted) {
    ChunkSlot<Element>& slot = slot_of(hop);
    // [gap: sides]
    slot.owner = r_.rank_at(-way_ * hop);
    post_receive(r_, r_.rank_at(-way_), slot, posted);
    post_send(r_, r_.rank_at(way_), at(hop - 1), posted);
    // end [gap: sides]
  }
  // end [lab: half_ring]

 private:
  ChunkSlot<Element>& slot_of(int hop) { return slots_[static_cast<std::size_t>((hop - 1) % 2)]; }

  RankProblem<Element>& r_;
  int way_;
  std::vector<ChunkSlot<Element>> slots_;
};

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  std::int64_t held = (r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)};
  HalfRing<Element> halves[] = {{r, 1, held}, {r, -1, held}};
  r.work.hold_kv(held);
  // [lab: both_ways]
  int step = 0;
  attend(r, mask, own_chunk(r), step, running);
  for (int hop = 1; hop <= halves[0].exchanges(); ++hop) {
    std::vector<Request> posted;
    // [gap: both_ways]
    for (HalfRing<Element>& half : halves) {
      if (hop <= half.exchanges()) half.post(hop, posted);
    }
    for (const Request request : posted) r.network.wait(request);
    for (HalfRing<Element>& half : halves) {
      if (hop <= half.exchanges()) attend(r, mask, half.at(hop), ++step, running);
    }
    // end [gap: both_ways]
  }
  // end [lab: both_ways]
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Two half rings: chunks come from both neighbours, in half the exchanges.",
    .costs = bidirectional_costs,
    .schedule = ScheduleKind::bidirectional};

}  // namespace ringlab::stages::bidirectional
