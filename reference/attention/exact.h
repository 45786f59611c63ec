// The value oracle: exact attention in fp64, forward and backward, with a bound on its own error.
//
// Independent by construction: it shares only the types of reference/core. Head mapping, mask and
// positions are decided here, one (query, key) pair at a time, by a predicate of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/report.h"
#include "reference/core/rows/progress.h"
#include "reference/core/run.h"

namespace ringlab {

struct ExactOptions {
  /// Query rows to compute, ascending; empty means all. Results then have tokens = rows.size().
  std::vector<std::int64_t> rows = {};
  int threads = 1;
  RowProgress progress = {};  ///< of exact_forward() alone
};

/// `rows`-many (or q_tokens) rows. The error tensors bound |computed - true| element by element;
/// tests compare them with 113-bit arithmetic.
struct ExactForward {
  Tensor<double> out, lse;
  Tensor<double> out_error, lse_error;
};

/// Two-pass softmax in fp64 with compensated sums; scores to about one rounding.
/// Fully masked rows: out = 0, lse = -inf (the sink where there is one), both without error. What
/// the mask hides is not read. O(visible pairs) time; memory besides the result O(kv_tokens) per
/// thread. Bits do not depend on `threads`. Input error when views do not fit the problem, or when
/// a visible input is not finite or overflows fp64; usage error for rows that are not ascending
/// rows of the problem.
ExactForward exact_forward(const AttentionInput& input, const ExactOptions& options = {});

/// exact_forward to less precision and many times as fast: plain fp64 sums in vectors, one query
/// per lane. Its errors are bounded a priori, by norms of rows (reference/attention/fast_error.h):
/// on ordinary inputs about 1e-12 of the largest value, which leaves room for judging subjects that
/// compute in fp32 or less; judge fp64 subjects with exact_forward. What may overflow, and problems
/// with modifiers, are handed to exact_forward. Contract otherwise as there; O(pairs) time for runs
/// of keys, in blocks; with bit matrices twice that. Bits depend on the processor's vectors, and
/// not on `threads`.
ExactForward fast_forward(const AttentionInput& input, const ExactOptions& options = {});

/// Per-element tolerances for a subject with this profile, the oracle's own error added.
/// +inf where no promise can be made (docs/numerics.md): such a case tests nothing, discard it.
struct ForwardTolerance {
  Tensor<double> out, lse;
};
/// `options` must name the rows that `exact` holds.
ForwardTolerance forward_tolerance(const AttentionInput& input, const ExactForward& exact,
                                   const NumericsProfile& profile,
                                   const ExactOptions& options = {});

/// Compares O and lse; `got` holds the same rows as `exact`.
Report compare_forward(const AttentionOutput& got, const ExactForward& exact,
                       const ForwardTolerance& tolerance);

struct ExactBackward {
  Tensor<double> dq, dk, dv;
  Tensor<double> dq_error, dk_error, dv_error;
  /// Per query head, where there are sinks. No subject gives it, so it has no tolerance.
  std::vector<double> dsinks = {}, dsinks_error = {};
};
/// Gradients of <dout, out> with respect to q, k, v; dout (batch, q_heads, q_tokens, v_dim).
/// K/V gradients are summed over the query heads of a group; a key that nobody sees gets exact
/// zeros. Every dv and dP product is compensated. Each thread takes K/V heads of batches one after
/// the other; memory O(kv_tokens · (head_dim + v_dim)) per thread. Bits do not depend on `threads`.
ExactBackward exact_backward(const AttentionInput& input, const TensorView<const double>& dout,
                             int threads = 1, const RowProgress& progress = {});

/// Tolerances for a subject that recomputes P from its own lse and takes D_i from its stored output
/// (or from P and dP). +inf where no promise can be made. Threads and memory as there.
struct BackwardTolerance {
  Tensor<double> dq, dk, dv;
};
BackwardTolerance backward_tolerance(const AttentionInput& input,
                                     const TensorView<const double>& dout,
                                     const ExactBackward& exact, const NumericsProfile& profile,
                                     int threads = 1);

/// Sizes that dq and dk have where the sums of a row do not cancel: root mean squares of
/// scale · (dout · v) · k and · q over sqrt(kv_tokens). Gradients of peaked rows are far smaller, so
/// compare() takes these as the least error of a wrong one.
struct GradientSizes {
  double dq = 0, dk = 0;
};
GradientSizes gradient_sizes(const AttentionInput& input, const TensorView<const double>& dout);

}  // namespace ringlab
