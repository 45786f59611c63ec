// Measurements of a rank as JSON, for other processes. In CBOR, which has NaN and infinities.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/core/run.h"

namespace ringlab {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Visit, owner, hop, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkStats, from, received_bytes, late_s, transfer_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TraceEvent, kind, rank, step, owner, peer, slot, gradient, pass,
                                   bytes, begin_ns, end_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankStats, sent_bytes, sent_messages, received_bytes,
                                   received_messages, peak_bytes, peak_kv_bytes, exchanges,
                                   node_messages, visits, heard_step_s, busy_s, links, events)

}  // namespace ringlab
