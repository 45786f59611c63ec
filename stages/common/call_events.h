// The events of a stage's run, made of what its ranks asked of their network.
#pragma once

#include <vector>

#include "optimized/transport/call_record.h"
#include "reference/core/schedule/trace.h"

namespace ringlab::stages {

/// By rank. Messages of one chunk that are posted together are one event; so are
/// blocks of one hop, about nobody's chunk in particular where they are several. A slot is a place
/// that chunks are received into; a step is how many blocks of its pass the rank had computed. What
/// a rank still waits for ends before it begins.
std::vector<std::vector<TraceEvent>> events_of(const std::vector<RankCalls>& calls);

}  // namespace ringlab::stages
