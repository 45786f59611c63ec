// What runs on tensors in their own types check before any work.
#pragma once

#include "optimized/ring/native.h"

namespace ringlab::ring {

/// The problem, and the options that make sense whatever the ranks are.
void check_run(const Problem& problem, const RunOptions& options);

/// Usage error unless `elements` is the problem's dtype.
void check_dtype(DType elements, DType wanted);

/// Modifiers, and extents of what one rank was given.
template <class Element>
void check_shard(const Problem& problem, const RunOptions& options,
                 const NativeShard<Element>& shard, int rank);

}  // namespace ringlab::ring
