// Stage 09, overlapped_causal_ring: slots, travelling positions, any layout, and the fast kernel.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/kernel_profile.h"
#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/visible_keys.h"
#include "stages/common/chunk_kernel.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/profiles.h"

namespace ringlab::stages::overlapped_causal_ring {

/// K and V of one owner where they lie, in the rank's own shard or in a slot, and which tokens the
/// rows are.
template <class Element>
struct Chunk {
  int owner = 0;
  std::span<const PositionRun> runs;
  std::span<const Element> k, v;
};

/// A place for a chunk of somebody else, and what is under way into it and out of it.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<PositionRun> runs;
  std::vector<Request> arriving, leaving;
};

inline constexpr int kKeys = 0, kValues = 1, kPositions = 2;  // message tags

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
    // How many runs will come is agreed beforehand, as all sizes are; what they are is not.
    slot.runs.resize(r_.kv_layout.positions(slot.owner).runs().size());
    slot.arriving = {
        r_.network.post_receive(from, kPositions, std::as_writable_bytes(std::span(slot.runs))),
        r_.network.post_receive(from, kKeys, slot.k_bytes(r_)),
        r_.network.post_receive(from, kValues, slot.v_bytes(r_))};
  }

  /// Waits until chunk `step` is there.
  void await(int step) {
    if (step == 0) return;
    for (const Request request : slot_of(step).arriving) r_.network.wait(request);
  }

  Chunk<Element> at(int step) {
    if (step == 0) return own();
    const Slot<Element>& slot = slot_of(step);
    return {slot.owner, slot.runs, slot.k_values(r_), slot.v_values(r_)};
  }

  /// Posts the sends of one step: the chunk at hand to the neighbour, or, with a single slot, the
  /// own chunk straight to the rank that needs it next.
  void pass_on(int step) {
    if (step + 1 == r_.ranks()) return;
    const Chunk<Element> chunk = straight() ? own() : at(step);
    const int to = rank_at(straight() ? step + 1 : 1);
    std::vector<Request>& posted = chunk.owner == r_.rank() ? own_leaving_ : slot_of(step).leaving;
    // [gap: travel]
    posted.push_back(r_.network.post_send(to, kPositions, std::as_bytes(chunk.runs)));
    // end [gap: travel]
    posted.push_back(r_.network.post_send(to, kKeys, std::as_bytes(chunk.k)));
    posted.push_back(r_.network.post_send(to, kValues, std::as_bytes(chunk.v)));
  }

  /// Chunk `step` was computed on: as soon as nobody reads its slot, a later chunk may come there.
  void reuse_slot(int step) {
    if (step == 0 || step + slots() >= r_.ranks()) return;
    wait_for_sends(slot_of(step).leaving);
    expect(step + slots());
  }

  /// Waits for every send that is still under way: its memory belongs to this rank.
  void drain() {
    wait_for_sends(own_leaving_);
    for (Slot<Element>& slot : slots_) wait_for_sends(slot.leaving);
  }

 private:
  Slot<Element>& slot_of(int step) {
    return slots_[static_cast<std::size_t>((step - 1) % slots())];
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
            r_.kv_layout.positions(r_.rank()).runs(),
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

inline Extents with_tokens(Extents extents, std::int64_t tokens) {
  extents.tokens = tokens;
  return extents;
}

/// The fast kernel on one chunk.
template <class Element>
void attend_on_cpu(RankProblem<Element>& r, const Positions& held, const Chunk<Element>& chunk,
                   RowStates<Element>& running) {
  const cpu::Block<Element> block{
      .mask = r.problem.mask,
      .queries = r.q_layout.positions(r.rank()),
      .keys = held,
      .scale = r.problem.scale,
      .tiles = {r.options.tile_queries, r.options.tile_keys},
      .q = r.q,
      .k = dense_view(chunk.k.data(), with_tokens(r.k.extents, held.size())),
      .v = dense_view(chunk.v.data(), with_tokens(r.v.extents, held.size()))};
  cpu::forward_block(block, running.states.data(), running.accs.data());
}

/// That kernel's maxima are in base 2.
template <class Element>
void leave_base_2(RowStates<Element>& running) {
  for (std::int64_t row = 0; row < running.states.size(); ++row) {
    running.states.data()[row] = cpu::natural_state(running.states.data()[row]);
  }
}

/// The running state takes in `chunk`, unless no query of this rank sees anything of it.
template <class Element>
void attend(RankProblem<Element>& r, const Chunk<Element>& chunk, int step,
            RowStates<Element>& running) {
  const Positions& queries = r.q_layout.positions(r.rank());
  const Positions held(std::vector<PositionRun>(chunk.runs.begin(), chunk.runs.end()));
  // [gap: skip]
  if (r.problem.mask.classify(queries, held) == Coverage::empty) return;
  // end [gap: skip]
  attend_on_cpu(r, held, chunk, running);
  r.work.visit(chunk.owner, step, r.problem.mask.count(queries, held));
}

template <class Element>
void attention(RankProblem<Element>& r) {
  RowStates<Element> running(r);
  ChunkStream<Element> chunks(r);

  for (int step = 1; step <= chunks.slots(); ++step) chunks.expect(step);
  // [gap: steps]
  for (int step = 0; step < r.ranks(); ++step) {
    chunks.await(step);
    chunks.pass_on(step);
    attend(r, chunks.at(step), step, running);
    chunks.reuse_slot(step);
  }
  chunks.drain();
  leave_base_2(running);
  finish_rows(r, running);
  // end [gap: steps]
}

/// Whether the kernels for tensor cores compute a run on devices; else the tile program does.
inline bool takes_fast_kernel(const Problem& problem, const RunOptions& options) {
  if (problem.dtype != DType::f16 && problem.dtype != DType::bf16) return false;
  const Shape& s = problem.shape;
  const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const ringlab::cuda::BlockShape block{.batch = narrow(s.batch),
                                        .q_heads = narrow(s.q_heads),
                                        .kv_heads = narrow(s.kv_heads),
                                        .head_dim = narrow(s.head_dim),
                                        .v_dim = narrow(s.v_dim)};
  if (problem.mask.has_bits() || !ringlab::cuda::why_not_portable(block).empty()) return false;
  const Layout keys = make_layout(options, s.kv_tokens, options.kv_layout);
  for (int owner = 0; owner < options.ranks; ++owner) {
    if (!ringlab::cuda::positions_increase(keys.positions(owner))) return false;
  }
  return true;
}

/// On devices the one of the kernel that is taken; else one rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  const Layout layout = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  const bool on_cpu = options.device == DeviceKind::cpu;
  const bool fast = !on_cpu && takes_fast_kernel(problem, options);
  std::int64_t tiles = fast ? 1 : 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    const Positions& held = layout.positions(owner);
    tiles += fast ? ringlab::cuda::most_blocks_met(held.size())
                  : cpu::key_blocks(held, options.tile_keys);
  }
  if (fast) return ringlab::cuda::hopper_profile(problem.dtype, tiles);
  return on_cpu ? cpu::kernel_profile(problem.dtype, tiles)
                : stage_profile(problem, options, tiles);
}

}  // namespace ringlab::stages::overlapped_causal_ring
