// Stage 10, backward: a second trip round the ring. dQ stays; dK and dV travel home with K and V.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "stages/common/chunk_slot.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::backward {

inline constexpr int kKeys = 0, kValues = 1, kKeyGradients = 2, kValueGradients = 3;  // tags

/// A chunk and the sums of its gradients so far. Sums are kept and sent in the accumulator's type;
/// dk is not multiplied by the scale before it is home.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using Real = Accumulator<Element>;
  MeteredBuffer<Real> dk, dv;

  explicit Slot(RankProblem<Element>& r)
      : ChunkSlot<Element>(r), dk(r.memory, this->k.size()), dv(r.memory, this->v.size()) {}

  std::span<std::byte> dk_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(dk.data(), values_of(r, r.k.extents.channels));
  }
  std::span<std::byte> dv_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(dv.data(), values_of(r, r.v.extents.channels));
  }

 private:
  std::int64_t values_of(const RankProblem<Element>& r, std::int64_t channels) const {
    const std::int64_t heads = r.k.extents.batch * r.k.extents.heads;
    return heads * r.kv_layout.positions(this->owner).size() * channels;
  }
};

/// Where this rank sends to and receives from.
struct Neighbours {
  int to = 0, from = 0;

  template <class Element>
  explicit Neighbours(const RankProblem<Element>& r) {
    const int step = r.options.direction == RingDirection::next ? 1 : r.ranks() - 1;
    to = (r.rank() + step) % r.ranks();
    from = (r.rank() + r.ranks() - step) % r.ranks();
  }
  /// What the neighbour holds while this rank holds the chunk of `owner`.
  int arriving_owner(int owner, int rank, int ranks) const {
    return (owner + from - rank + ranks) % ranks;
  }
};

template <class Element>
std::vector<Request> post_chunk(RankProblem<Element>& r, ChunkSlot<Element>& leaving,
                                ChunkSlot<Element>& arriving) {
  const Neighbours ring(r);
  arriving.owner = ring.arriving_owner(leaving.owner, r.rank(), r.ranks());
  return {r.network.post_send(ring.to, kKeys, leaving.k_bytes(r)),
          r.network.post_send(ring.to, kValues, leaving.v_bytes(r)),
          r.network.post_receive(ring.from, kKeys, arriving.k_bytes(r)),
          r.network.post_receive(ring.from, kValues, arriving.v_bytes(r))};
}

/// The sums follow their chunk, one computation later: they are complete only then.
template <class Element>
void pass_gradients_on(RankProblem<Element>& r, Slot<Element>& leaving, Slot<Element>& arriving) {
  const Neighbours ring(r);
  arriving.owner = ring.arriving_owner(leaving.owner, r.rank(), r.ranks());
  const Request posted[] = {
      r.network.post_send(ring.to, kKeyGradients, leaving.dk_bytes(r)),
      r.network.post_send(ring.to, kValueGradients, leaving.dv_bytes(r)),
      r.network.post_receive(ring.from, kKeyGradients, arriving.dk_bytes(r)),
      r.network.post_receive(ring.from, kValueGradients, arriving.dv_bytes(r))};
  for (const Request request : posted) r.network.wait(request);
}

/// Calls visit(row, key) for every pair that the mask allows, row by row. Rows count over (heads,
/// queries of this rank), keys over (K/V heads, keys of the chunk).
template <class Element, class Visit>
void for_each_pair(const RankProblem<Element>& r, int owner, Visit visit) {
  const std::vector<std::int64_t> queries = r.q_layout.positions(r.rank()).to_list();
  const std::vector<std::int64_t> keys = r.kv_layout.positions(owner).to_list();
  const KernelShape s = kernel_shape(r, static_cast<std::int64_t>(keys.size()));
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
    SoftmaxState<Real>& state = running.states.data()[row];
    Real* acc = running.accs.data() + row * dv;
    const Real s = score(r, slot, row, key);
    const Real top = s > state.row_max ? s : state.row_max;
    const Real keep = rescale_factor(state.row_max, top), weight = rescale_factor(s, top);
    state = {top, state.row_sum * keep + weight};
    scale_row(acc, keep, dv);
    add_row(acc, weight, slot.v.data() + key * dv, dv);
  });
}

template <class Element>
void finish_forward(RankProblem<Element>& r, const RowStates<Element>& whole) {
  using Real = Accumulator<Element>;
  constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  const std::int64_t dv = r.problem.shape.v_dim;
  for (std::int64_t row = 0; row < whole.states.size(); ++row) {
    const SoftmaxState<Real>& state = whole.states.data()[row];
    const bool sees_nothing = state.row_max == kNothing;  // 0/0 otherwise
    r.lse.data[row] = sees_nothing ? kNothing : state.row_max + std::log(state.row_sum);
    for (std::int64_t at = row * dv; at < (row + 1) * dv; ++at) {
      const Real value = sees_nothing ? Real(0) : whole.accs.data()[at] / state.row_sum;
      r.out.data[at] = static_cast<Element>(value);
    }
  }
}

/// The first trip: as in the stages before.
template <class Element>
void forward_trip(RankProblem<Element>& r) {
  const int ranks = r.ranks();
  RowStates<Element> running(r);
  ChunkSlot<Element> here(r);
  std::optional<ChunkSlot<Element>> arriving;  // a ring of one rank has no hop
  if (ranks > 1) arriving.emplace(r);
  r.work.hold_kv((ranks > 1 ? 2 : 1) * (here.k.bytes() + here.v.bytes()));
  here.fill_with_own(r);
  for (int hop = 0; hop < ranks; ++hop) {
    const bool last = hop + 1 == ranks;
    std::vector<Request> posted;
    if (!last) posted = post_chunk(r, here, *arriving);
    const std::int64_t pairs =
        r.problem.mask.count(r.q_layout.positions(r.rank()), r.kv_layout.positions(here.owner));
    if (pairs > 0) attend(r, here, running);
    if (pairs > 0) r.work.visit(here.owner, hop, pairs);
    for (const Request request : posted) r.network.wait(request);
    if (!last) std::swap(here, *arriving);
  }
  finish_forward(r, running);
}

/// D_i = Σ_c dO_ic O_ic, which equals Σ_j P_ij dP_ij: one number per row instead of one pass more.
template <class Element>
MeteredBuffer<Accumulator<Element>> row_deltas(RankProblem<Element>& r) {
  using Real = Accumulator<Element>;
  const std::int64_t dv = r.problem.shape.v_dim;
  MeteredBuffer<Real> delta(r.memory, r.lse.extents.size());
  for (std::int64_t row = 0; row < delta.size(); ++row) {
    // [gap: delta]
    delta.data()[row] = dot<Real>(r.dout.data + row * dv, r.out.data + row * dv, dv);
    // end [gap: delta]
  }
  return delta;
}

/// The own queries against the chunk in `slot`: to dq, which stays, and to the chunk's dk and dv.
template <class Element>
void add_gradients(RankProblem<Element>& r, Slot<Element>& slot,
                   const MeteredBuffer<Accumulator<Element>>& delta,
                   MeteredBuffer<Accumulator<Element>>& dq) {
  using Real = Accumulator<Element>;
  const std::int64_t d = r.problem.shape.head_dim, dv = r.problem.shape.v_dim;
  for_each_pair(r, slot.owner, [&](std::int64_t row, std::int64_t key) {
    const Element* upstream = r.dout.data + row * dv;
    // [gap: probability]
    const Real probability = std::exp(score(r, slot, row, key) - r.lse.data[row]);
    // end [gap: probability]
    // [gap: score_gradient]
    const Real dp = dot<Real>(upstream, slot.v.data() + key * dv, dv);
    const Real ds = probability * (dp - delta.data()[row]);
    // end [gap: score_gradient]
    // [gap: sums]
    add_row(dq.data() + row * d, ds, slot.k.data() + key * d, d);
    add_row(slot.dk.data() + key * d, ds, r.q.data + row * d, d);
    add_row(slot.dv.data() + key * dv, probability, upstream, dv);
    // end [gap: sums]
  });
}

/// sums · factor, rounded once.
template <class Element>
void store(const Accumulator<Element>* sums, double factor, const TensorView<Element>& gradient) {
  for (std::int64_t i = 0; i < gradient.extents.size(); ++i) {
    gradient.data[i] = static_cast<Element>(sums[i] * static_cast<Accumulator<Element>>(factor));
  }
}

/// The second trip: P hops for dK and dV, the last one brings them home.
template <class Element>
void backward_trip(RankProblem<Element>& r) {
  const int ranks = r.ranks();
  const MeteredBuffer<Accumulator<Element>> delta = row_deltas(r);
  MeteredBuffer<Accumulator<Element>> dq(r.memory, r.q.extents.size());
  Slot<Element> here(r);
  std::optional<Slot<Element>> arriving;
  if (ranks > 1) arriving.emplace(r);
  here.fill_with_own(r);
  for (int hop = 0; hop < ranks; ++hop) {
    const bool last = hop + 1 == ranks;
    std::vector<Request> posted;
    if (!last) posted = post_chunk(r, here, *arriving);  // the way home is for the sums alone
    add_gradients(r, here, delta, dq);
    for (const Request request : posted) r.network.wait(request);
    // [gap: home]
    if (ranks > 1) {
      pass_gradients_on(r, here, *arriving);
      std::swap(here, *arriving);
    }
    // end [gap: home]
  }
  // [gap: scale]
  store(dq.data(), r.problem.scale, r.dq);
  store(here.dk.data(), r.problem.scale, r.dk);
  store(here.dv.data(), 1.0, r.dv);
  // end [gap: scale]
}

template <class Element>
void attention(RankProblem<Element>& r) {
  forward_trip(r);
  if (r.wants_gradients) backward_trip(r);
}

/// One rescale per key at most.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

}  // namespace ringlab::stages::backward
