// Traces of a job whose ranks are processes, perhaps on machines whose clocks know nothing of each
// other: a common zero before the run, and all events on rank 0 after it.
#pragma once

#include <chrono>
#include <vector>

#include "optimized/transport/communicator.h"
#include "reference/core/schedule/trace.h"

namespace ringlab::cli {

struct JobClock {
  std::chrono::steady_clock::time_point zero;  ///< rank 0's zero, as this rank's clock reads
  double uncertainty_s = 0;                    ///< how far off it can be, either way
};

/// To be called by all ranks. Rank 0 asks each rank for its time a few times; the answer with the
/// shortest round trip is taken to have been given half way through it, so it is off by at most
/// half that round trip (Cristian 1989). Drift during the run is not corrected. No rank's zero is
/// later than the moment when this returns, so no event is before it.
JobClock align_clocks(Communicator& network);

/// The events of all ranks on rank 0, nothing elsewhere. To be called by all ranks.
std::vector<TraceEvent> gather_events(const std::vector<TraceEvent>& mine, Communicator& network);

}  // namespace ringlab::cli
