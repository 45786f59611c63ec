// The sign of Σ c_k e^{x_k} with exact c_k and x_k, decided for certain.
//
// Lindemann and Weierstrass: for distinct algebraic x_k, the e^{x_k} are linearly independent over
// the algebraic numbers. So once equal exponents are put together and zero coefficients left out,
// the sum is zero only when no term is left. Otherwise it is some number other than zero, and
// intervals of growing precision around it must one day lie on one side of zero: the loop ends.
#pragma once

#include <vector>

#include "reference/precise/dyadic.h"

namespace ringlab::precise {

struct ExponentialTerm {
  Dyadic coefficient;
  Dyadic exponent;
};

struct SignOfSum {
  int sign = 0;   ///< -1, 0 or 1
  long bits = 0;  ///< precision that decided it; 0: no arithmetic was needed
};

SignOfSum sign_of_sum(std::vector<ExponentialTerm> terms);

}  // namespace ringlab::precise
