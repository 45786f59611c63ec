// Matched filters: bias that is far below any bound of single elements, and where it comes from.
//
// If the keys of one ring step count β times too much, O is off by β g with
// g = Σ_{j in the step} w_j (v_j - o). Projecting the error of O on g, row by row, gives β and
// how sure it is: z = Σ S_r / sqrt(Σ S_r²), S_r the projection of one row, normalises itself and
// lets the channels of a row share their errors.
#pragma once

#include <string>
#include <vector>

#include "property_tests/subject.h"

namespace ringlab::verify {

struct FilterResult {
  std::string filter;  ///< "step 2 of the ring", "o", "the own key", "the key after the own"
  double z = 0;
  double beta = 0;  ///< the factor is 1 + beta
};

/// One random normal problem of several heads, one run. Empty where the subject cannot take it.
std::vector<FilterResult> matched_filters(const Subject& subject, DType dtype, std::uint64_t seed);

/// |z| that no correct subject reaches.
inline constexpr double kFilterLimit = 5.5;

/// Warnings of the filters: in bf16, or f16, or without those in all dtypes. They are no failures:
/// no bound is broken.
std::vector<std::string> filter_warnings(const Subject& subject, std::uint64_t seed);

}  // namespace ringlab::verify
