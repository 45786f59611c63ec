// The caller's q, k, v and dout as one attention problem.
#pragma once

#include <optional>

#include "python/core/arrays.h"
#include "python/core/wishes.h"
#include "reference/core/run.h"

namespace ringlab::python {

struct GivenInput {
  GivenArray q, k, v;
  std::optional<GivenArray> dout = {};
  Problem problem;
};

/// Input error naming the tensor where one is missing, of another dtype than q, or does not fit.
GivenInput given_input(const nanobind::dict& arrays, const Wishes& wishes);

/// The caller's input in doubles, exactly.
struct WidenedInput {
  Tensor<double> q, k, v;
  std::optional<Tensor<double>> dout = {};
  Problem problem;
  AttentionInput input() const;
};
WidenedInput widened(const GivenInput& given);

}  // namespace ringlab::python
