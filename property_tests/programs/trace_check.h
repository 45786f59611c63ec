// A check that a recorded run did what its schedule says, and kept the laws of slots in time.
#pragma once

#include <string>
#include <vector>

#include "reference/core/schedule/schedule.h"
#include "reference/core/schedule/trace.h"

namespace ringlab {

/// The faults in the events of a run, one sentence per finding with the rank and the step; empty
/// when
/// - each rank's computes, sums, sends and receives are those of the schedule, once each, with the
///   same peers and slots, and in its order where it gives one;
/// - nothing that writes to a slot overlaps in time with anything else that uses this slot, and
///   uses of a slot follow each other as in the schedule: the invariants of
///   tests/model/slot_ring.pml;
/// - each send has its receive, with as many bytes.
///
/// `ranks` has each rank's events in any order; waits and events of the other pass are ignored.
/// Times are compared within a rank only, so the machines' clocks need not agree.
std::vector<std::string> check_trace(const std::vector<std::vector<TraceEvent>>& ranks,
                                     const Schedule& schedule);

}  // namespace ringlab
