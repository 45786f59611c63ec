// The running softmax states of all query rows of a rank, in memory.
#pragma once

#include "reference/core/state.h"
#include "stages/common/kernel_shape.h"

namespace ringlab::stages {

/// Starts as the identity: no key seen. An acc row is not divided by its row sum yet.
template <class Element>
struct RowStates {
  using Real = Accumulator<Element>;
  MeteredBuffer<SoftmaxState<Real>> states;  ///< (heads, queries)
  MeteredBuffer<Real> accs;                  ///< (heads, queries, v_dim)

  explicit RowStates(RankProblem<Element>& r) : RowStates(r.memory, kernel_shape(r, 0)) {}

 private:
  RowStates(MemoryMeter& meter, const KernelShape& shape)
      : states(meter, shape.heads * shape.queries),
        accs(meter, shape.heads * shape.queries * shape.v_dim) {}
};

}  // namespace ringlab::stages
