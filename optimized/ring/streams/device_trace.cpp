#include "optimized/ring/streams/device_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlab::ring {
namespace {

TraceEvent event_of(const StreamOperation& operation, TraceKind kind, int rank) {
  return {.kind = kind, .rank = rank, .step = operation.step, .owner = operation.owner};
}

/// The events of an operation: two for a copy, one for another operation on slots.
std::vector<TraceEvent> events_of(const StreamOperation& operation) {
  const bool is_sum = operation.payload == Payload::gradients;
  switch (operation.action) {
    // Step, owner and peer are as a rank on a processor records them: one checker reads both traces
    // (property_tests/programs/trace_check.h).
    case StreamAction::attend: {
      TraceEvent compute = event_of(operation, TraceKind::compute, operation.rank);
      compute.slot = operation.slot;
      return {compute};
    }
    case StreamAction::add_gradient: {
      TraceEvent add = event_of(operation, TraceKind::add, operation.rank);
      add.slot = operation.gradient;
      add.gradient = true;
      return {add};
    }
    // Sender and receiver each have a step of their own for the same copy.
    case StreamAction::copy: {
      TraceEvent send = event_of(operation, TraceKind::send, operation.from.rank);
      send.step = operation.from_step;
      send.peer = operation.to.rank;
      send.slot = operation.from.slot;
      TraceEvent receive = event_of(operation, TraceKind::receive, operation.to.rank);
      receive.peer = operation.from.rank;
      receive.slot = operation.to.slot;
      send.gradient = receive.gradient = is_sum;
      return {send, receive};
    }
    default:
      return {};
  }
}

}  // namespace

DeviceTrace::DeviceTrace(const IssuedStreams& streams, std::vector<int> devices)
    : streams_(streams), devices_(std::move(devices)) {}

void DeviceTrace::start() {
  // Sets a zero per device: times of ranks are compared on one device, but not across devices.
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    const int device = devices_[rank];
    if (starts_.contains(device)) continue;
    cuda::OwnedEvent event = cuda::make_timed_event(device);
    cuda::record_event(device, event.get(),
                       streams_.of(static_cast<int>(rank), StreamKind::compute), "trace");
    starts_.emplace(device, std::move(event));
  }
}

cuda::OwnedEvent DeviceTrace::mark(const StreamOperation& operation) const {
  const int device = device_of(operation);
  cuda::OwnedEvent event = cuda::make_timed_event(device);
  cuda::record_event(device, event.get(), streams_.of(operation.rank, operation.stream),
                     place(operation));
  return event;
}

void DeviceTrace::around(const StreamOperation& operation, Pass pass, std::int64_t bytes,
                         const std::function<void()>& issue) {
  // Both events are on the operation's own stream, so they time it and not work beside it.
  cuda::OwnedEvent begin = mark(operation);
  issue();
  timed_.push_back({operation, pass, bytes, std::move(begin), mark(operation)});
}

std::int64_t DeviceTrace::ns_of(const Timed& timed, const cuda::OwnedEvent& event) const {
  const cuda::OwnedEvent& start = starts_.at(device_of(timed.operation));
  return std::llround(1e9 * cuda::seconds_between(start.get(), event.get()));
}

std::vector<std::vector<TraceEvent>> DeviceTrace::events() const {
  std::vector<std::vector<TraceEvent>> all(devices_.size());
  for (const Timed& timed : timed_) {
    for (TraceEvent event : events_of(timed.operation)) {
      event.pass = timed.pass;
      event.bytes = timed.bytes;
      event.begin_ns = ns_of(timed, timed.begin);
      event.end_ns = ns_of(timed, timed.end);
      all[static_cast<std::size_t>(event.rank)].push_back(event);
    }
  }
  // Sorts by time, since streams may leave the order of issue; equal times keep it.
  for (std::vector<TraceEvent>& rank : all) {
    std::ranges::stable_sort(rank, {}, &TraceEvent::begin_ns);
  }
  return all;
}

}  // namespace ringlab::ring
