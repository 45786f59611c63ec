// Random problems for tests of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "optimized/ring/ends.h"
#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"
#include "reference/core/shards.h"

namespace ringlab::ring {

/// A case and what is made of it.
struct Trial {
  verify::Case drawn;
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  Tensor<double> dout;
  bool gradients = true;
  AttentionInput input() const {
    AttentionInput input = data.input(problem);
    if (gradients) input.dout = dout.view();
    return input;
  }
  std::string text() const { return verify::to_token(drawn) + ": " + verify::describe(drawn); }
};

inline Trial make_trial(const verify::Case& c) {
  return {c, verify::make_problem(c), verify::make_options(c), verify::make_tensors(c),
          verify::make_dout(c)};
}

/// One rank's rows of the trial, with dout where it has gradients.
template <class Element>
RankRows<Element> rows_of_trial(const Trial& trial, const RankTokens& tokens) {
  std::optional<Tensor<Element>> dout;
  if (trial.gradients) dout = shard_of<Element>(trial.dout.view(), tokens.queries);
  return owned_rows<Element>(shard_of<Element>(trial.data.q.view(), tokens.queries),
                             shard_of<Element>(trial.data.k.view(), tokens.keys),
                             shard_of<Element>(trial.data.v.view(), tokens.keys), std::move(dout));
}

/// At most 40 queries and keys.
inline Trial random_trial(verify::Draws& draws) {
  verify::Case c = verify::random_case(draws);
  c.shape.q_tokens = std::min<std::int64_t>(c.shape.q_tokens, 40);
  c.shape.kv_tokens = std::min<std::int64_t>(c.shape.kv_tokens, 40);
  return make_trial(verify::fitted(c));
}

}  // namespace ringlab::ring
