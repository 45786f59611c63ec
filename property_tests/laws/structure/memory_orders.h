// Tensors in other memory orders, with NaN around them and in their gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/trial.h"

namespace ringlab::verify {

/// A copy of a tensor in another memory order, with NaN margins before, after and in between.
struct GuardedTensor {
  std::vector<double> memory;
  TensorView<const double> view;
};
/// Places a tensor with its dimensions in any order, gaps after any, backwards now and then.
GuardedTensor guarded(const Tensor<double>& tensor, Draws& draws);
/// Places rows with channels side by side, as most kernels are given them: batches, heads and
/// tokens in any order, padded rows, tensors packed three to a row.
GuardedTensor guarded_rows(const Tensor<double>& tensor, Draws& draws);

struct GuardedInputs {
  GuardedTensor q, k, v;
  AttentionInput input(const Problem& problem) const { return {problem, q.view, k.view, v.view}; }
};
/// Places the inputs, for half of the seeds in any memory order, for the others in rows.
GuardedInputs guarded_inputs(const Trial& trial, std::uint64_t seed);
/// Places a further tensor as guarded_inputs() does for this seed.
GuardedTensor guarded_tensor(const Tensor<double>& tensor, std::uint64_t seed);

}  // namespace ringlab::verify
