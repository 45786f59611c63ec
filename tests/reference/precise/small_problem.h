// One query against a few keys whose scores and values are written down.
#pragma once

#include <utility>
#include <vector>

#include "reference/core/run.h"

namespace ringlab::testing {

struct KeyValue {
  double score = 0;
  double value = 0;
};

/// q = scale = 1, so that a key is its score.
struct SmallProblem {
  Problem problem;
  AttentionTensors tensors;
  AttentionInput input() const { return tensors.input(problem); }

  explicit SmallProblem(const std::vector<KeyValue>& keys) {
    const auto n = static_cast<std::int64_t>(keys.size());
    problem.shape = {.batch = 1,
                     .q_heads = 1,
                     .kv_heads = 1,
                     .q_tokens = 1,
                     .kv_tokens = n,
                     .head_dim = 1,
                     .v_dim = 1};
    problem.dtype = DType::f64;
    problem.mask = Mask().bind(1, n);
    tensors = {Tensor<double>(problem.shape.q(), 1.0), Tensor<double>(problem.shape.k()),
               Tensor<double>(problem.shape.v())};
    for (std::size_t j = 0; j < keys.size(); ++j) {
      tensors.k.values()[j] = keys[j].score;
      tensors.v.values()[j] = keys[j].value;
    }
  }
};

}  // namespace ringlab::testing
