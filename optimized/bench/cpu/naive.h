// The peer that any reference is measured against: attention as three plain loops in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/core/run.h"

namespace ringlab::bench {

/// Causal attention of one batch entry with equal lengths, no sampling, no error bound.
/// Returns (1, q_heads, q_tokens, v_dim).
inline Tensor<double> naive_attention(const AttentionInput& input) {
  const Shape& s = input.problem.shape;
  Tensor<double> out(s.out());
  std::vector<double> weights(static_cast<std::size_t>(s.kv_tokens));
  for (std::int64_t head = 0; head < s.q_heads; ++head) {
    const std::int64_t kv_head = head / (s.q_heads / s.kv_heads);
    for (std::int64_t i = 0; i < s.q_tokens; ++i) {
      const std::int64_t keys = i + 1;
      double row_max = -std::numeric_limits<double>::infinity(), row_sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (std::int64_t c = 0; c < s.head_dim; ++c) {
          score += input.q(0, head, i, c) * input.k(0, kv_head, j, c);
        }
        weights[static_cast<std::size_t>(j)] = score * input.problem.scale;
        row_max = std::max(row_max, weights[static_cast<std::size_t>(j)]);
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        const double weight = std::exp(weights[static_cast<std::size_t>(j)] - row_max);
        row_sum += weight;
        for (std::int64_t c = 0; c < s.v_dim; ++c) {
          out(0, head, i, c) += weight * input.v(0, kv_head, j, c);
        }
      }
      for (std::int64_t c = 0; c < s.v_dim; ++c) out(0, head, i, c) /= row_sum;
    }
  }
  return out;
}

}  // namespace ringlab::bench
