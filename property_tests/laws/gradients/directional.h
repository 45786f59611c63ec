// The derivative of <dO, O> along a direction, from the definition of attention.
#pragma once

#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {

struct Derivative {
  long double value = 0;
  long double error = 0;  ///< bound on |value - exact|
};

/// d/dt <dO, O(q + t·Δq, k + t·Δk, v + t·Δv)> at t = 0 for one query head, in 64-bit arithmetic.
Derivative derivative_along(const GradientTrial& trial, const AttentionTensors& direction,
                            std::int64_t batch, std::int64_t head);

}  // namespace ringlab::verify
