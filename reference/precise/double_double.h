// Tier 1: attention in double-double, forward and backward, each number with its own error bound.
//
// About 106 bits: what fp64 leaves undecided, fp64 kernels among it, is decided here at a cost of
// microseconds per (query, key) pair. Derived a third time, apart from reference/attention: it
// shares with it only the types of reference/core. The bounds come from arithmetic that carries
// them along (reference/precise/ball.h has the argument), nothing is estimated.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/rows/progress.h"
#include "reference/core/run.h"

namespace ringlab {

/// |high + low - true value| <= error.
struct DoubleDouble {
  double high = 0;
  double low = 0;
  double error = 0;
};

struct PreciseOptions {
  /// Query rows to compute, ascending; empty means all. Gradients always take all.
  std::vector<std::int64_t> rows = {};
  int threads = 1;
  RowProgress progress = {};
};

/// Rows as PreciseOptions::rows says.
struct DoubleDoubleForward {
  Tensor<DoubleDouble> out, lse;
};

/// Every mask, grouped heads, v_dim unlike head_dim, all modifiers. Rows that see no key: out = 0,
/// lse = -inf or the sink, without error. What the mask hides is not read. A bound is inf where
/// doubles overflow on the way. Bits do not depend on `threads`. Memory besides the result
/// O(kv_tokens) per thread. Input error when views do not fit the problem or a visible input is
/// not finite; usage error for rows that are not ascending rows of the problem.
DoubleDoubleForward double_double_forward(const AttentionInput& input,
                                          const PreciseOptions& options = {});

/// Gradients of <dout, out>. A key that nobody sees gets zeros without error.
struct DoubleDoubleBackward {
  Tensor<DoubleDouble> dq, dk, dv;
};
/// Threads share out the K/V heads of the batch. Usage error when options name rows.
DoubleDoubleBackward double_double_backward(const AttentionInput& input,
                                            const TensorView<const double>& dout,
                                            const PreciseOptions& options = {});

}  // namespace ringlab
