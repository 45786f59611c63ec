#include "reference/core/overflow.h"

#include <array>
#include <cstdio>

#include "reference/core/dtype.h"

namespace ringlab {

std::string overflow_note(const Problem& problem, double q_norm, double k_norm) {
  const DTypeInfo& carrier = dtype_info(problem.dtype == DType::f64 ? DType::f64 : DType::f32);
  const double scale = std::max(1.0, std::abs(problem.scale));
  const double largest = scale * (q_norm * k_norm);
  if (largest <= carrier.max_finite) return "";
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "q and k are so large that %s may overflow: up to %.3g where %s ends at %.3g; NaN "
                "and infinities in the result come from there",
                scale > 1 ? "scale · q·k" : "q·k", largest, carrier.name.data(),
                carrier.max_finite);
  return text.data();
}

}  // namespace ringlab
