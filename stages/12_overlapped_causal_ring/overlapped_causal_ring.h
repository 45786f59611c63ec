// Stage 12, overlapped_causal_ring: slots, travelling positions, any layout, and the fast kernel.
#pragma once

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/kernel_profile.h"
#include "stages/11_skipping_ring/skipping_ring.h"
#include "stages/12_overlapped_causal_ring/tensor_cores.h"

namespace ringlab::stages::overlapped_causal_ring {

using skipping_ring::ChunkStream, slotted_ring::Chunk;

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

/// Makes natural maxima of those of the fast kernel, which are in base 2.
template <class Element>
void leave_base_2(RowStates<Element>& running) {
  for (std::int64_t row = 0; row < running.states.size(); ++row) {
    running.states.data()[row] = cpu::natural_state(running.states.data()[row]);
  }
}

/// The running state takes in chunk `step`, unless no query of this rank sees anything of it.
template <class Element>
void attend(RankProblem<Element>& r, ChunkStream<Element>& chunks, int step,
            RowStates<Element>& running) {
  // [lab: attend]
  const Positions& queries = r.q_layout.positions(r.rank());
  const Positions held(chunks.runs_of(step));
  // [gap: skip]
  if (r.problem.mask.classify(queries, held) == Coverage::empty) return;
  // end [gap: skip]
  attend_on_cpu(r, held, chunks.at(step), running);
  r.work.visit(chunks.at(step).owner, step, r.problem.mask.count(queries, held));
  // end [lab: attend]
}

template <class Element>
void attention(RankProblem<Element>& r) {
  RowStates<Element> running(r);
  ChunkStream<Element> chunks(r);
  // [lab: steps]
  for (int step = 1; step <= chunks.slots(); ++step) chunks.expect(step);
  // [gap: steps]
  for (int step = 0; step < r.ranks(); ++step) {
    chunks.await(step);
    chunks.pass_on(step);
    attend(r, chunks, step, running);
    if (chunks.free_slot(step)) chunks.expect(step + chunks.slots());
  }
  chunks.drain();
  leave_base_2(running);
  merge::finish(r, running);
  // end [gap: steps]
  // end [lab: steps]
}

/// The arithmetic of the kernel that computes: the fast one, or on devices the one that takes it.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  if (options.device != DeviceKind::cpu) {
    return overlapped_causal_ring::profile_on_devices(problem, options);
  }
  const Layout layout = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t tiles = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    tiles += cpu::key_blocks(layout.positions(owner), options.tile_keys);
  }
  return cpu::kernel_profile(problem.dtype, tiles);
}

inline constexpr StageFacts kFacts{
    .idea = "Slots, travelling positions, any layout, and the fast kernel: all of it at once.",
    .costs = skipping_ring::costs,
    .skips_empty_blocks = true,
    .ring_traffic = true,
    .prefetches = true,
    .tensor_cores = true,
    .on_gpus = overlapped_causal_ring_on_gpus};

}  // namespace ringlab::stages::overlapped_causal_ring
