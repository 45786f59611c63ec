// Timed events of ranks: the raw material of traces, flight recordings and overlap figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// compute: a block of attention. send, receive: from posting until its wait returned. wait: the
/// time a rank stood still for a message. add: a sum of gradients.
enum class TraceKind { compute, send, receive, wait, add };
std::string_view trace_kind_name(TraceKind kind);

/// One thing a rank did. Times are nanoseconds of one clock that all ranks of the run share as well
/// as their machines' clocks allow (they start at 0 when the run does).
struct TraceEvent {
  TraceKind kind = TraceKind::compute;
  int rank = 0;
  int step = 0;
  int owner = 0;          ///< of the chunk concerned
  int peer = kNobody;     ///< send, receive and wait: the other rank
  int slot = kHome;       ///< K/V slot, or gradient slot where `gradient` is set
  bool gradient = false;  ///< of dK and dV, not of K and V
  Pass pass = Pass::forward;
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// "step 3: receive chunk of 5 from 1, 12.3 to 15.0 ms": one line of a flight recording.
std::string describe(const TraceEvent& event);

}  // namespace ringlab
