// Stage 14, straight_backward: dQ stays; parts of dK and dV go straight to their owner.
#pragma once

#include <cmath>

#include "stages/13_pairwise_ring/pairwise_ring.h"

namespace ringlab::stages::straight_backward {

/// Sums of one chunk's gradients, dK as k and dV as v, in the accumulator's type. dK is not
/// multiplied by the scale before it is complete.
template <class Element>
using Sums = ChunkSlot<Accumulator<Element>>;

/// D_i = Σ_c dO_ic O_ic, which equals Σ_j P_ij dP_ij: one number per row instead of one pass more.
template <class Element>
MeteredBuffer<Accumulator<Element>> row_deltas(RankProblem<Element>& r) {
  using Real = Accumulator<Element>;
  const std::int64_t dv = r.problem.shape.v_dim;
  MeteredBuffer<Real> delta(r.memory, r.lse.extents.size());
  // [lab: delta]
  for (std::int64_t row = 0; row < delta.size(); ++row) {
    // [gap: delta]
    delta.data()[row] = dot<Real>(r.dout.data + row * dv, r.out.data + row * dv, dv);
    // end [gap: delta]
  }
  // end [lab: delta]
  return delta;
}

/// The own queries against the chunk in `slot`: to dq, which stays, and to the chunk's sums.
template <class Element>
void add_gradients(RankProblem<Element>& r, const ChunkSlot<Element>& slot,
                   const MeteredBuffer<Accumulator<Element>>& delta,
                   MeteredBuffer<Accumulator<Element>>& dq, Sums<Element>& sums) {
  using Real = Accumulator<Element>;
  const std::int64_t d = r.problem.shape.head_dim, dv = r.problem.shape.v_dim;
  pairwise_ring::for_each_pair(r, slot.owner, [&](std::int64_t row, std::int64_t key) {
    // [lab: gradients]
    const Element* upstream = r.dout.data + row * dv;
    // [gap: probability]
    const Real probability = std::exp(pairwise_ring::score(r, slot, row, key) - r.lse.data[row]);
    // end [gap: probability]
    // [gap: score_gradient]
    const Real dp = dot<Real>(upstream, slot.v.data() + key * dv, dv);
    const Real ds = probability * (dp - delta.data()[row]);
    // end [gap: score_gradient]
    // [gap: sums]
    add_row(dq.data() + row * d, ds, slot.k.data() + key * d, d);
    add_row(sums.k.data() + key * d, ds, r.q.data + row * d, d);
    add_row(sums.v.data() + key * dv, probability, upstream, dv);
    // end [gap: sums]
    // end [lab: gradients]
  });
}

/// Sends the sums of hop `hop` to the owner of their chunk. At that hop the own chunk is as far
/// away in the other direction: what comes from there is added to `home`.
template <class Element>
void send_home(RankProblem<Element>& r, int hop, Sums<Element>& sums, Sums<Element>& home) {
  // [lab: send_home]
  Sums<Element> arriving(r);
  // [gap: send_home]
  sums.owner = r.rank_at(-hop), arriving.owner = r.rank();
  const Request posted[] = {
      r.network.post_send(sums.owner, kKeyGradients, sums.k_bytes(r)),
      r.network.post_send(sums.owner, kValueGradients, sums.v_bytes(r)),
      r.network.post_receive(r.rank_at(hop), kKeyGradients, arriving.k_bytes(r)),
      r.network.post_receive(r.rank_at(hop), kValueGradients, arriving.v_bytes(r))};
  for (const Request request : posted) r.network.wait(request);
  add_row(home.k.data(), Accumulator<Element>(1), arriving.k.data(), home.k.size());
  add_row(home.v.data(), Accumulator<Element>(1), arriving.v.data(), home.v.size());
  // end [gap: send_home]
  // end [lab: send_home]
}

/// sums · factor, rounded once.
template <class Element>
void store(const MeteredBuffer<Accumulator<Element>>& sums, double factor,
           const TensorView<Element>& gradient) {
  for (std::int64_t i = 0; i < gradient.extents.size(); ++i) {
    gradient.data[i] = static_cast<Element>(sums.data()[i] * Accumulator<Element>(factor));
  }
}

template <class Element>
void attention(RankProblem<Element>& r) {
  pairwise_ring::attention(r);
  if (!r.begin_backward()) return;
  const MeteredBuffer<Accumulator<Element>> delta = row_deltas(r);
  MeteredBuffer<Accumulator<Element>> dq(r.memory, r.q.extents.size());
  Sums<Element> home(r);
  stages::ring::circulate(r, [&](const ChunkSlot<Element>& slot, int hop) {
    Sums<Element> sums(r);
    add_gradients(r, slot, delta, dq, hop == 0 ? home : sums);
    if (hop > 0) send_home(r, hop, sums, home);
  });
  store(dq, r.problem.scale, r.dq);
  store(home.k, r.problem.scale, r.dk);
  store(home.v, 1.0, r.dv);
}

/// One rescale per key at most.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

inline constexpr StageFacts kFacts{
    .idea = "dQ stays; what a rank adds to dK and dV goes straight to their owner.",
    .costs = ring_costs,
    .skips_empty_blocks = true,
    .ring_traffic = true,
    .backward = true,
    .cpu_only = true};

}  // namespace ringlab::stages::straight_backward
