// One rank on processors.
#pragma once

#include "optimized/ring/place.h"

namespace ringlab::ring {

/// Agrees with the other ranks of `network`, asks for its rows, runs both passes and hands over its
/// results.
template <class Element>
RunSummary run_rank(const CheckedRun<Element>& run, Communicator& network);

}  // namespace ringlab::ring
