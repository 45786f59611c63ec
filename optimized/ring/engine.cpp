// The engine on tensors that one owner has whole, as doubles: shard, run, put together.
#include "optimized/ring/engine.h"

#include <new>

#include "optimized/ring/native.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"

namespace ringlab::ring {
namespace {

void check_input(const AttentionInput& input) {
  check_problem(input.problem);
  check_extents("q", input.q.extents, input.problem.shape.q());
  check_extents("k", input.k.extents, input.problem.shape.k());
  check_extents("v", input.v.extents, input.problem.shape.v());
  if (input.dout) check_extents("do", input.dout->extents, input.problem.shape.out());
}

/// One rank's rows of the whole input, in the problem's dtype.
template <class Element>
struct Rows {
  Tensor<Element> q, k, v;
  std::optional<Tensor<Element>> dout;
};

template <class Element>
NativeShard<Element> own_rows(const AttentionInput& input, const RankPlace& place) {
  auto rows = std::make_shared<Rows<Element>>();
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

RunResult empty_result(const AttentionInput& input) {
  const Shape& shape = input.problem.shape;
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

RunResult run_whole(const EngineParts& parts, const AttentionInput& input,
                    const RunOptions& options) {
  check_input(input);
  RunResult result = empty_result(input);
  with_element_type(input.problem.dtype, [&]<class Element>(Element) {
    NativeSummary summary = run_native<Element>(
        input.problem, options,
        {.source = [&](const RankPlace& place) { return own_rows<Element>(input, place); },
         .sink = [&](const RankPlace& place,
                     NativeResult<Element>&& mine) { put_in_place(mine, place, result); }},
        parts);
    result.ranks = std::move(summary.ranks);
    result.leftover_messages = summary.leftover_messages;
    result.seconds = summary.seconds;
  });
  return result;
}

}  // namespace

RunResult run_engine_with(const EngineParts& parts, const AttentionInput& input,
                          const RunOptions& options) {
  try {
    return run_whole(parts, input, options);
  } catch (const std::bad_alloc&) {  // outside the ranks: theirs have become errors already
    throw_environment_error({.where = "ring engine",
                             .expected = "memory for the outputs and the ranks",
                             .actual = "out of memory",
                             .hint = "Use fewer tokens, heads or ranks"});
  }
}

RunResult run_engine(const AttentionInput& input, const RunOptions& options) {
  return run_engine_with({}, input, options);
}

}  // namespace ringlab::ring
