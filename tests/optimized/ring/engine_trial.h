// Random problems for tests of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"

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

/// At most 40 queries and keys.
inline Trial random_trial(verify::Draws& draws) {
  verify::Case c = verify::random_case(draws);
  c.shape.q_tokens = std::min<std::int64_t>(c.shape.q_tokens, 40);
  c.shape.kv_tokens = std::min<std::int64_t>(c.shape.kv_tokens, 40);
  return make_trial(verify::fitted(c));
}

}  // namespace ringlab::ring
