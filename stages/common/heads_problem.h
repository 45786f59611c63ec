// Some heads with all their tokens, as a problem of one rank that earlier stages can solve.
#pragma once

#include <vector>

#include "stages/common/chunk_slot.h"

namespace ringlab::stages {

/// All tokens on `rank`: those of rank 0, then those of rank 1, ….
inline Layout gathered(const Layout& layout, int rank) {
  std::vector<PositionRun> all;
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    const std::vector<PositionRun>& runs = layout.positions(owner).runs();
    all.insert(all.end(), runs.begin(), runs.end());
  }
  std::vector<Positions> parts(static_cast<std::size_t>(layout.ranks()));
  parts[static_cast<std::size_t>(rank)] = Positions(all);
  return Layout::from_parts(std::move(parts));
}

/// Room for so many heads of all tokens, queries and results as well as keys and values.
template <class Element>
class HeadsProblem {
 public:
  HeadsProblem(RankProblem<Element>& r, std::int64_t q_heads, std::int64_t kv_heads)
      : r_(r),
        problem_(with_heads(r.problem, q_heads, kv_heads)),
        q_layout_(gathered(r.q_layout, r.rank())),
        kv_layout_(gathered(r.kv_layout, r.rank())),
        q_(r.memory, shape().q().size()),
        out_(r.memory, shape().out().size()),
        lse_(r.memory, shape().lse().size()) {}
  HeadsProblem(const HeadsProblem&) = delete;  // rank_problem() refers to it
  HeadsProblem& operator=(const HeadsProblem&) = delete;

  const Shape& shape() const { return problem_.shape; }
  TensorView<Element> q() { return dense_view(q_.data(), shape().q()); }
  /// The problem for an earlier stage. K and V lie in a slot: only their extents are told here.
  RankProblem<Element> rank_problem() {
    return {.problem = problem_,
            .options = r_.options,
            .q_layout = q_layout_,
            .kv_layout = kv_layout_,
            .q = q(),
            .k = {nullptr, shape().k(), dense_strides(shape().k())},
            .v = {nullptr, shape().v(), dense_strides(shape().v())},
            .out = dense_view(out_.data(), shape().out()),
            .lse = dense_view(lse_.data(), shape().lse()),
            .out_positions = r_.out_positions,
            .network = r_.network,
            .memory = r_.memory,
            .work = r_.work};
  }

 private:
  static Problem with_heads(Problem problem, std::int64_t q_heads, std::int64_t kv_heads) {
    problem.shape.q_heads = q_heads;
    problem.shape.kv_heads = kv_heads;
    return problem;
  }

  RankProblem<Element>& r_;
  Problem problem_;
  Layout q_layout_, kv_layout_;
  MeteredBuffer<Element> q_, out_;
  MeteredBuffer<Accumulator<Element>> lse_;
};

}  // namespace ringlab::stages
