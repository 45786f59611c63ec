// The events of a stage's run, made of what its ranks asked of their network.
#pragma once

#include <vector>

#include "optimized/transport/call_record.h"
#include "reference/core/schedule/trace.h"

namespace ringlab::stages {

/// The events of each rank. Messages of one chunk that are posted together are one event; so are
/// blocks of one hop, about nobody's chunk in particular where they are several. A slot is a place
/// that chunks are received into; a step is the number of blocks of its pass that the rank had
/// computed. The end of a wait that has not ended is before its begin.
std::vector<std::vector<TraceEvent>> events_of(const std::vector<RankCalls>& calls);

}  // namespace ringlab::stages
