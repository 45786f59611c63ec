// The problem to compute: shapes, dtype, scale, mask and modifiers. Knows nothing of ranks, threads
// or files.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/mask.h"
#include "reference/core/modifiers.h"
#include "reference/core/tensor.h"

namespace ringlab {

/// Shapes of one attention problem. Any of them may be zero except head_dim, v_dim and the heads.
/// q (batch, q_heads, q_tokens, head_dim), k (batch, kv_heads, kv_tokens, head_dim),
/// v (batch, kv_heads, kv_tokens, v_dim), out (batch, q_heads, q_tokens, v_dim),
/// lse (batch, q_heads, q_tokens, 1).
/// Grouped-query attention: query head h reads K/V head h / (q_heads / kv_heads).
struct Shape {
  std::int64_t batch = 1;
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t q_tokens = 0;
  std::int64_t kv_tokens = 0;
  std::int64_t head_dim = 1;
  std::int64_t v_dim = 1;

  Extents q() const { return {batch, q_heads, q_tokens, head_dim}; }
  Extents k() const { return {batch, kv_heads, kv_tokens, head_dim}; }
  Extents v() const { return {batch, kv_heads, kv_tokens, v_dim}; }
  Extents out() const { return {batch, q_heads, q_tokens, v_dim}; }
  Extents lse() const { return {batch, q_heads, q_tokens, 1}; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// One attention problem: out = softmax(scale · q kᵀ, masked) v, per batch and head, with scores
/// and weights modified as core/modifiers.h says.
struct Problem {
  Shape shape;
  DType dtype = DType::f32;  ///< of q, k, v and out; lse is f32 (f64 for f64)
  double scale = 1.0;
  Mask mask;
  Modifiers modifiers = {};
};

/// The customary scale 1/sqrt(head_dim). Input error when head_dim < 1.
double default_scale(std::int64_t head_dim);

/// Throws an input error when the shapes, the scale or the mask make no sense together: an extent
/// too small, sizes beyond checked_size, heads that do not group, a scale that is not finite, a
/// mask not bound to these lengths, modifiers out of range. A dtype that attention does not take
/// (fp8) is a usage error.
void check_problem(const Problem& problem);

}  // namespace ringlab
