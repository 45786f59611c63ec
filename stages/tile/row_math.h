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

/// to = from, as Real.
template <class Real, class Row>
RINGLAB_HD void copy_row(Real* to, const Row* from, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) to[c] = static_cast<Real>(from[c]);
}

/// One thread's part of copying `count` values: neighbouring threads, neighbouring values.
template <class Real, class Row>
RINGLAB_HD void copy_together(Real* to, const Row* from, std::int64_t count, int thread,
                              int threads) {
  for (std::int64_t i = thread; i < count; i += threads) to[i] = static_cast<Real>(from[i]);
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
