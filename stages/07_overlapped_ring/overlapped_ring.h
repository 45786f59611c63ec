// Stage 07, overlapped_ring: chunks are fetched into slots while earlier ones are computed on.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "stages/common/chunk_kernel.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/launch.h"
#include "stages/common/profiles.h"

namespace ringlab::stages::overlapped_ring {

/// K and V of one owner where they lie: in the rank's own shard or in a slot.
template <class Element>
struct Chunk {
  int owner = 0;
  std::span<const Element> k, v;
};

/// A place for a chunk of somebody else, and what is under way into it and out of it.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<Request> arriving, leaving;
};

inline constexpr int kKeys = 0, kValues = 1;  // message tags

/// The chunks as they come by: chunk `step` is the one computed on at that step, chunk 0 the own
/// one, which is read and sent from the shard and needs no slot.
template <class Element>
class ChunkStream {
 public:
  explicit ChunkStream(RankProblem<Element>& r) : r_(r) {
    slots_.reserve(static_cast<std::size_t>(std::min(r.options.slots, r.ranks() - 1)));
    std::int64_t bytes = (r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)};
    while (slots_.size() < slots_.capacity()) {
      const Slot<Element>& slot = slots_.emplace_back(r);
      bytes += slot.k.bytes() + slot.v.bytes();
    }
    r.work.hold_kv(bytes);
  }
  int slots() const { return static_cast<int>(slots_.size()); }

  /// Posts the receives of chunk `step`. Its slot must be free.
  void expect(int step) {
    Slot<Element>& slot = slot_of(step);
    slot.owner = rank_at(-step);
    const int from = straight() ? slot.owner : rank_at(-1);
    slot.arriving = {r_.network.post_receive(from, kKeys, slot.k_bytes(r_)),
                     r_.network.post_receive(from, kValues, slot.v_bytes(r_))};
  }

  /// Waits until chunk `step` is there.
  void await(int step) {
    if (step == 0) return;
    // [gap: await]
    for (const Request request : slot_of(step).arriving) r_.network.wait(request);
    // end [gap: await]
  }

  Chunk<Element> at(int step) {
    if (step == 0) return own();
    const Slot<Element>& slot = slot_of(step);
    return {slot.owner, slot.k_values(r_), slot.v_values(r_)};
  }

  /// Posts the sends of one step: the chunk at hand to the neighbour, or, with a single slot, the
  /// own chunk straight to the rank that needs it next.
  void pass_on(int step) {
    if (step + 1 == r_.ranks()) return;
    const Chunk<Element> chunk = straight() ? own() : at(step);
    const int to = rank_at(straight() ? step + 1 : 1);
    std::vector<Request>& posted = chunk.owner == r_.rank() ? own_leaving_ : slot_of(step).leaving;
    posted.push_back(r_.network.post_send(to, kKeys, std::as_bytes(chunk.k)));
    posted.push_back(r_.network.post_send(to, kValues, std::as_bytes(chunk.v)));
  }

  /// Chunk `step` was computed on: as soon as nobody reads its slot, a later chunk may come there.
  void reuse_slot(int step) {
    if (step == 0 || step + slots() >= r_.ranks()) return;
    // [gap: reuse]
    wait_for_sends(slot_of(step).leaving);
    // end [gap: reuse]
    expect(step + slots());
  }

  /// Waits for every send that is still under way: its memory belongs to this rank.
  void drain() {
    wait_for_sends(own_leaving_);
    for (Slot<Element>& slot : slots_) wait_for_sends(slot.leaving);
  }

 private:
  Slot<Element>& slot_of(int step) {
    // [gap: slot]
    return slots_[static_cast<std::size_t>((step - 1) % slots())];
    // end [gap: slot]
  }
  /// With one slot a rank cannot pass a chunk on while the next one arrives: everybody would wait
  /// for everybody's slot. Chunks then come straight from their owners.
  bool straight() const { return slots() == 1; }
  /// The rank `hops` further on in the direction in which chunks travel.
  int rank_at(int hops) const {
    const int ranks = r_.ranks();
    const int step = r_.options.direction == RingDirection::next ? hops : -hops;
    return (r_.rank() + step % ranks + ranks) % ranks;
  }
  Chunk<Element> own() const {
    return {r_.rank(),
            {r_.k.data, static_cast<std::size_t>(r_.k.extents.size())},
            {r_.v.data, static_cast<std::size_t>(r_.v.extents.size())}};
  }
  void wait_for_sends(std::vector<Request>& requests) {
    for (const Request request : requests) r_.network.wait(request);
    requests.clear();
  }

  RankProblem<Element>& r_;
  std::vector<Slot<Element>> slots_;
  std::vector<Request> own_leaving_;
};

/// The running state takes in `chunk`.
template <class Element>
void attend(RankProblem<Element>& r, const MaskTable& mask, const Chunk<Element>& chunk, int step,
            RowStates<Element>& running) {
  const Positions& held = r.kv_layout.positions(chunk.owner);
  const KernelShape shape = kernel_shape(r, held.size());
  const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
  launch(r, shape.blocks(r.options.tile_queries),
         ChunkKernel<Element>{shape, r.options.tile_keys, /*all_visible=*/false,
                              mask.rows(positions), array_of(r.q), array_of(chunk.k),
                              array_of(chunk.v), array_of(running.states), array_of(running.accs)});
  r.work.visit(chunk.owner, step, r.problem.mask.count(r.q_layout.positions(r.rank()), held));
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  ChunkStream<Element> chunks(r);

  for (int step = 1; step <= chunks.slots(); ++step) chunks.expect(step);
  for (int step = 0; step < r.ranks(); ++step) {
    // [gap: step]
    chunks.await(step);
    chunks.pass_on(step);
    attend(r, mask, chunks.at(step), step, running);
    chunks.reuse_slot(step);
    // end [gap: step]
  }
  chunks.drain();
  finish_rows(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  const Layout layout = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t tiles = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    tiles += tiles_of(layout.positions(owner).size(), options.tile_keys);
  }
  return stage_profile(problem, options, tiles);
}

}  // namespace ringlab::stages::overlapped_ring
