// Problems and tensors for the stages, and results held against the reference.
#pragma once

#include <string>

#include "reference/attention/exact.h"

namespace ringlab::stages::testing {

/// A result in double, and how far a subject with the given profile may be from it.
struct Expected {
  AttentionOutput exact;
  AttentionOutput allowed;
};

Expected expected_of(const AttentionInput& input, const NumericsProfile& profile);

/// Normal values, exactly representable in problem.dtype, other ones for every element.
AttentionTensors random_tensors(const Problem& problem, std::uint64_t seed);

/// Scale 1/sqrt(head_dim), mask in its command-line form.
Problem make_problem(const Shape& shape, const std::string& mask, DType dtype = DType::f32);

/// Empty when every element of O and lse is inside the bound, else the worst one in words.
std::string difference(const AttentionOutput& got, const Expected& expected);

}  // namespace ringlab::stages::testing
