// A row's results from its running state, on the host and on devices.
#pragma once

#include <cmath>

#include "reference/core/host_device.h"
#include "reference/core/state.h"

namespace ringlab::stages {

template <class Real>
RINGLAB_HD bool saw_nothing(const SoftmaxState<Real>& state) {
  return is_empty(state);
}

/// One element of out: acc / row_sum, rounded to Element; 0 for a row that saw nothing, where it
/// would be 0/0. The same bits on the host and on a device.
template <class Element, class Real>
RINGLAB_HD Element finished_value(const SoftmaxState<Real>& state, Real acc) {
  return static_cast<Element>(saw_nothing(state) ? Real(0) : acc / state.row_sum);
}

// [answer: finished_lse]
/// row_max + log(row_sum), natural; -inf for a row that saw nothing. A device's logarithm is not
/// the host's: they differ by a unit or two of its last place.
template <class Real>
RINGLAB_HD Real finished_lse(const SoftmaxState<Real>& state) {
  return saw_nothing(state) ? kEmptyRowMax<Real> : state.row_max + std::log(state.row_sum);
}
// end [answer: finished_lse]

}  // namespace ringlab::stages
