// Traces as files: the trace event format that Perfetto and chrome://tracing show.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/core/schedule/trace.h"

namespace ringlab::report {

/// All events of a run, in any order.
using Trace = std::vector<TraceEvent>;

/// The lanes of a rank. Waits have one of their own: they overlap receives.
enum class Lane { compute, send, receive, wait };
inline constexpr int kLanes = 4;
Lane lane_of(TraceKind kind);  ///< sums of gradients are computed
std::string lane_name(Lane lane);

/// One complete ("X") event for each of the trace: pid 0, tid rank · kLanes + lane, times in
/// microseconds with nanoseconds behind the point; all else in args. Metadata names the lanes.
std::string trace_json(const Trace& trace);

/// The events of trace_json() without the names of lanes, as an array.
nlohmann::ordered_json events_json(const Trace& trace);

/// An event has 17 values, the names of the lanes some more.
inline constexpr std::int64_t kMostReadEvents = 1'600'000;

/// Reads what trace_json() wrote. Input error, with the number of the event, for anything else: an
/// unknown kind, a number missing, fractional, negative or out of range, an end before its
/// beginning. `name` is for messages.
Trace parse_trace(const std::string& text, const std::string& name);

/// 1 + the largest rank; 0 for no events.
int ranks_of(const Trace& trace);

}  // namespace ringlab::report
