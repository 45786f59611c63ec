// The inner loops of attention on one row, in the accumulator type.
#pragma once

#include <cstdint>

#include "reference/core/host_device.h"

namespace ringlab::stages {

/// Σ a_c b_c, left to right, one rounding per product and per sum.
template <class Real, class A, class B>
RINGLAB_HD Real dot(const A* a, const B* b, std::int64_t count) {
  Real sum = 0;
  for (std::int64_t c = 0; c < count; ++c) sum += static_cast<Real>(a[c]) * static_cast<Real>(b[c]);
  return sum;
}

/// row *= factor.
template <class Real>
RINGLAB_HD void scale_row(Real* row, Real factor, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) row[c] *= factor;
}

/// acc += weight · row.
template <class Real, class Row>
RINGLAB_HD void add_row(Real* acc, Real weight, const Row* row, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) acc[c] += weight * static_cast<Real>(row[c]);
}

}  // namespace ringlab::stages
