// Stage 13, pairwise_ring: the ring in plain loops, pair by pair, as the way back needs it.
#pragma once

#include <vector>

#include "stages/05_ring/ring.h"
#include "stages/common/costs.h"
#include "stages/common/profiles.h"

namespace ringlab::stages::pairwise_ring {

/// Calls visit(row, key) for every pair that the mask allows, row by row. Rows count over (heads,
/// queries of this rank), keys over (K/V heads, keys of the chunk).
template <class Element, class Visit>
void for_each_pair(const RankProblem<Element>& r, int owner, Visit visit) {
  const std::vector<std::int64_t> queries = r.q_layout.positions(r.rank()).to_list();
  const std::vector<std::int64_t> keys = r.kv_layout.positions(owner).to_list();
  const KernelShape s = kernel_shape(r, static_cast<std::int64_t>(keys.size()));
  // [lab: pairs]
  for (std::int64_t row = 0; row < s.heads * s.queries; ++row) {
    const std::int64_t kv_head = row / s.queries / s.group;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const auto query = static_cast<std::size_t>(row % s.queries);
      // [gap: sees]
      const bool seen = r.problem.mask.allows(queries[query], keys[static_cast<std::size_t>(j)]);
      // end [gap: sees]
      if (seen) visit(row, kv_head * s.keys + j);
    }
  }
  // end [lab: pairs]
  if (r.work.backward()) r.work.note_gradients(owner);
}

template <class Element>
Accumulator<Element> score(const RankProblem<Element>& r, const ChunkSlot<Element>& slot,
                           std::int64_t row, std::int64_t key) {
  using Real = Accumulator<Element>;
  const std::int64_t d = r.problem.shape.head_dim;
  return Real(r.problem.scale) * dot<Real>(r.q.data + row * d, slot.k.data() + key * d, d);
}

/// Online softmax, one key at a time.
template <class Element>
void attend(RankProblem<Element>& r, const ChunkSlot<Element>& slot, RowStates<Element>& running) {
  using Real = Accumulator<Element>;
  const std::int64_t dv = r.problem.shape.v_dim;
  for_each_pair(r, slot.owner, [&](std::int64_t row, std::int64_t key) {
    // [lab: one_key]
    SoftmaxState<Real>& state = running.states.data()[row];
    Real* acc = running.accs.data() + row * dv;
    const Real s = score(r, slot, row, key);
    // [gap: one_key]
    const Real top = s > state.row_max ? s : state.row_max;
    const Real keep = rescale_factor(state.row_max, top), weight = rescale_factor(s, top);
    state = {top, state.row_sum * keep + weight};
    scale_row(acc, keep, dv);
    add_row(acc, weight, slot.v.data() + key * dv, dv);
    // end [gap: one_key]
    // end [lab: one_key]
  });
}

template <class Element>
void attention(RankProblem<Element>& r) {
  RowStates<Element> running(r);
  stages::ring::circulate(r, [&](const ChunkSlot<Element>& slot, int hop) {
    const std::int64_t pairs =
        r.problem.mask.count(r.q_layout.positions(r.rank()), r.kv_layout.positions(slot.owner));
    if (pairs == 0) return;
    attend(r, slot, running);
    r.work.visit(slot.owner, hop, pairs);
  });
  merge::finish(r, running);
}

/// One rescale per key at most.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

inline constexpr StageFacts kFacts{
    .idea = "The ring in plain loops, pair by pair: what the way back is made of.",
    .costs = ring_costs,
    .skips_empty_blocks = true,
    .ring_traffic = true,
    .cpu_only = true};

}  // namespace ringlab::stages::pairwise_ring
