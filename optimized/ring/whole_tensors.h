// Whole tensors of one owner, as doubles: ranks take their rows of them and put results back.
#pragma once

#include <optional>
#include <utility>

#include "optimized/ring/ends.h"
#include "reference/core/checks.h"
#include "reference/core/shards.h"

namespace ringlab::ring {

/// One rank's rows of the whole input, in the problem's dtype.
template <class Element>
RankRows<Element> own_rows(const AttentionInput& input, const RankTokens& tokens) {
  std::optional<Tensor<Element>> dout;
  if (input.dout) dout = shard_of<Element>(*input.dout, tokens.queries);
  return owned_rows<Element>(shard_of<Element>(input.q, tokens.queries),
                             shard_of<Element>(input.k, tokens.keys),
                             shard_of<Element>(input.v, tokens.keys), std::move(dout));
}

/// Room for the results; input error when the tensors do not fit the problem.
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

/// Writes a rank's results; ranks write different tokens, so they need not wait for one another.
template <class Element>
void put_in_place(const RankResult<Element>& mine, const RankTokens& tokens, RunResult& result) {
  unshard(mine.out, tokens.queries, result.output.out);
  unshard(mine.lse, tokens.queries, result.output.lse);
  if (!mine.gradients) return;
  unshard(mine.gradients->dq, tokens.queries, result.gradients->dq);
  unshard(mine.gradients->dk, tokens.keys, result.gradients->dk);
  unshard(mine.gradients->dv, tokens.keys, result.gradients->dv);
}

/// Ends of a run of `input`, whose results go to `result`; both must outlive the ends.
template <class Element>
Ends<Element> whole_ends(const AttentionInput& input, RunResult& result) {
  return {.source = [&input](const RankTokens& tokens) { return own_rows<Element>(input, tokens); },
          .sink = [&result](const RankTokens& tokens,
                            RankResult<Element>&& mine) { put_in_place(mine, tokens, result); }};
}

inline void take_summary(RunSummary&& summary, RunResult& result) {
  result.ranks = std::move(summary.ranks);
  result.leftover_messages = summary.leftover_messages;
  result.seconds = summary.seconds;
}

}  // namespace ringlab::ring
