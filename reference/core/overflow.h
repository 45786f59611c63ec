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
  double largest = 0;
  for_each_row(rows.extents, [&](auto b, auto h, auto t) {
    const Element* const row = rows.data + rows.offset(b, h, t, 0);
    double sum = 0;
    for (std::int64_t c = 0; c < rows.extents.channels; ++c) {
      const auto value = static_cast<double>(row[c * rows.strides.channel]);
      sum += value * value;
    }
    largest = std::max(largest, sum);
  });
  return std::sqrt(largest);
}

/// A sentence where rows of q and k of these norms may have a product, or a score, beyond the
/// numbers that kernels sum in (f32; f64 for f64), by Cauchy and Schwarz; empty where none can.
std::string overflow_note(const Problem& problem, double q_norm, double k_norm);

}  // namespace ringlab
