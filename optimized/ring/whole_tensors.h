// Tensors that one owner has whole, as doubles: ranks take their rows of them and put them back.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "optimized/ring/native.h"
#include "reference/core/checks.h"
#include "reference/core/shards.h"

namespace ringlab::ring {

/// One rank's rows of the whole input, in the problem's dtype.
template <class Element>
NativeShard<Element> own_rows(const AttentionInput& input, const RankPlace& place) {
  struct Rows {
    Tensor<Element> q, k, v;
    std::optional<Tensor<Element>> dout;
  };
  auto rows = std::make_shared<Rows>();
  rows->q = shard_of<Element>(input.q, place.queries);
  rows->k = shard_of<Element>(input.k, place.keys);
  rows->v = shard_of<Element>(input.v, place.keys);
  NativeShard<Element> shard{.q = rows->q.view(), .k = rows->k.view(), .v = rows->v.view()};
  if (input.dout) {
    rows->dout = shard_of<Element>(*input.dout, place.queries);
    shard.dout = rows->dout->view();
  }
  shard.owner = std::move(rows);
  return shard;
}

/// Input error when the tensors do not fit the problem; else room for its results.
inline RunResult empty_result(const AttentionInput& input) {
  const Shape& shape = input.problem.shape;
  check_problem(input.problem);
  check_extents("q", input.q.extents, shape.q());
  check_extents("k", input.k.extents, shape.k());
  check_extents("v", input.v.extents, shape.v());
  if (input.dout) check_extents("do", input.dout->extents, shape.out());
  RunResult result{.output = {Tensor<double>(shape.out()), Tensor<double>(shape.lse())},
                   .ranks = {},
                   .leftover_messages = 0,
                   .seconds = 0};
  if (input.dout) {
    result.gradients = {Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                        Tensor<double>(shape.v())};
  }
  return result;
}

/// Ranks write different tokens, so they need not wait for one another.
template <class Element>
void put_in_place(const NativeResult<Element>& mine, const RankPlace& place, RunResult& result) {
  unshard(mine.out, place.queries, result.output.out);
  unshard(mine.lse, place.queries, result.output.lse);
  if (!mine.gradients) return;
  unshard(mine.gradients->dq, place.queries, result.gradients->dq);
  unshard(mine.gradients->dk, place.keys, result.gradients->dk);
  unshard(mine.gradients->dv, place.keys, result.gradients->dv);
}

/// Both must outlive what is returned.
template <class Element>
NativeEnds<Element> whole_ends(const AttentionInput& input, RunResult& result) {
  return {.source = [&input](const RankPlace& place) { return own_rows<Element>(input, place); },
          .sink = [&result](const RankPlace& place,
                            NativeResult<Element>&& mine) { put_in_place(mine, place, result); }};
}

inline void take_summary(NativeSummary&& summary, RunResult& result) {
  result.ranks = std::move(summary.ranks);
  result.leftover_messages = summary.leftover_messages;
  result.seconds = summary.seconds;
}

}  // namespace ringlab::ring
