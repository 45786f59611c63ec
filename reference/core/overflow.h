// Inputs so large that scores may not fit the numbers they are summed in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "reference/core/problem.h"
#include "reference/core/tensor.h"

namespace ringlab {

/// The largest Euclidean norm of a row.
template <class Element>
double largest_norm(const TensorView<const Element>& rows) {
  const Extents& e = rows.extents;
  double largest = 0, sum = 0;
  std::int64_t at = 0;
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    const auto value = static_cast<double>(rows(b, h, t, c));
    sum += value * value;
    if (++at % e.channels != 0) return;
    largest = std::max(largest, sum);
    sum = 0;
  });
  return std::sqrt(largest);
}

/// A sentence where rows of q and k of these norms may have a product, or a score, beyond the
/// numbers that kernels sum in (f32; f64 for f64), by Cauchy and Schwarz; empty where none can.
std::string overflow_note(const Problem& problem, double q_norm, double k_norm);

}  // namespace ringlab
