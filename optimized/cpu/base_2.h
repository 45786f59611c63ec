// The kernels count scores in base 2: 2^x is cheaper than e^x, and the factor log2 e goes into the
// scale.
#pragma once

#include <numbers>

#include "reference/core/state.h"

namespace ringlab::cpu {

/// x · log2 e, rounded once.
template <class Real>
Real in_base_2(Real x) {
  return static_cast<Real>(static_cast<long double>(x) * std::numbers::log2e_v<long double>);
}

/// x · ln 2, rounded once.
template <class Real>
Real in_base_e(Real x) {
  return static_cast<Real>(static_cast<long double>(x) * std::numbers::ln2_v<long double>);
}

/// A kernel's state as other code keeps it: row_max is a score, not log2 e times one.
template <class Real>
SoftmaxState<Real> natural_state(const SoftmaxState<Real>& in_base_2) {
  return {in_base_e(in_base_2.row_max), in_base_2.row_sum};
}

}  // namespace ringlab::cpu
