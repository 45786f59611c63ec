// Checks of every run when it enters the engine (engine.cpp), before any work.
#pragma once

#include "optimized/ring/ends.h"

namespace ringlab::ring {

/// Throws for a problem or options that are not valid, whatever the place of the ranks.
void check_run(const Problem& problem, const RunOptions& options);

/// Usage error unless `elements` is the problem's dtype.
void check_dtype(DType elements, DType wanted);

/// `ends`, with a source that throws an input error for rows that do not fit the problem.
template <class Element>
Ends<Element> checked_ends(const Problem& problem, const Ends<Element>& ends);

}  // namespace ringlab::ring
