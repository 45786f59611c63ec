// Checks the results of timed work: a sample of them against the reference.
#pragma once

#include <string>

#include "reference/core/problem.h"
#include "reference/core/small_float.h"
#include "reference/core/tensor.h"

namespace ringlab::bench {

/// One K/V head and query heads that read it: inputs and results of a pass, (1, heads, tokens,
/// channels) each. Without gradients dout, dq, dk and dv are empty.
struct GpuSample {
  Problem problem;  ///< of these heads
  Tensor<BFloat16> q, k, v, out, dout, dq, dk, dv;
  Tensor<float> lse;
};

/// An error in words, or empty: out and lse of some rows compared with the reference, in the bounds
/// of the kernels for tensor cores, exponentials with a relative error of `exp_error` more;
/// gradients by their sums over all tokens (property_tests/gradient_identities.h).
std::string wrong_in(const GpuSample& sample, double exp_error = 0);

}  // namespace ringlab::bench
