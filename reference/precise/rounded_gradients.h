// Tier 2 for gradients: enclosed by intervals of some hundred bits, and rounded.
//
// Is there a loop that always ends, as there is for out and lse? In principle: with
// e_j = e^{s_j}, l = Σ e_j of a row, one row's dQ is
//   dq_c = scale Σ_{j,m} e_j e_m (dP_j - dP_m) k_jc / l²,
// a quotient of sums of exponentials of exact numbers again, and exponential_sum.h could decide on
// which side of a midpoint it lies, with n² terms per element. dK and dV sum over rows that each
// have an l of their own; multiplied out that is a term for every choice of one key per row. Nobody
// can afford that, so here the loop stops: an element that kGradientBits do not decide is counted,
// and its value is near one of the two candidates. Exact ties and exact zeros that come out of
// cancelling keys are such elements.
#pragma once

#include <cstdint>

#include "reference/core/run.h"
#include "reference/precise/double_double.h"

namespace ringlab {

inline constexpr long kGradientBits = 1280;

/// Values on the grid of the dtype, as doubles.
struct RoundedGradients {
  Tensor<double> dq, dk, dv;
  /// Bounds of |value - true gradient|, rounding included.
  Tensor<double> dq_error, dk_error, dv_error;
  std::int64_t undecided = 0;  ///< elements that may have been rounded the wrong way
  long bits = 0;               ///< precision of the intervals
};

/// Every mask, modifier and shape, soft-capping too. All elements are computed with 320 bits; when
/// that leaves some undecided, once more with kGradientBits. Zeros are +0 unless known to be
/// negative. Input error when views do not fit or a visible input is not finite; usage error when
/// options name rows, and for dtypes that attention does not take.
RoundedGradients rounded_backward(const AttentionInput& input, const TensorView<const double>& dout,
                                  DType dtype, const PreciseOptions& options = {});

}  // namespace ringlab
