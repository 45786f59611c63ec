// The plainest attention there is, in double, with a bound for what another arithmetic may give.
#pragma once

#include <string>

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::stages::testing {

/// A result in double, and how far a subject with the given profile may be from it.
struct NaiveResult {
  AttentionOutput exact;
  AttentionOutput allowed;
};

/// softmax(scale q kᵀ) v, one (query, key) pair at a time. Rows that see nothing: out 0, lse -inf.
/// The bound is the textbook one with |v_j - o| replaced by 2 max|v|: no element of a correct
/// kernel exceeds it, and it is some units in the last place wide, or as wide as the wire makes it.
NaiveResult naive_attention(const AttentionInput& input, const NumericsProfile& profile);

/// Normal values, exactly representable in problem.dtype, other ones for every element.
AttentionTensors random_tensors(const Problem& problem, std::uint64_t seed);

/// Scale 1/sqrt(head_dim), mask in its command-line form.
Problem make_problem(const Shape& shape, const std::string& mask, DType dtype = DType::f32);

/// Empty when every element of O and lse is inside the bound, else the worst one in words.
std::string difference(const AttentionOutput& got, const NaiveResult& naive);

}  // namespace ringlab::stages::testing
