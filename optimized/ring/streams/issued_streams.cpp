#include "optimized/ring/streams/issued_streams.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "optimized/cuda/stream_kernels.h"
#include "optimized/cuda/stuck_device.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::ring {
namespace {

constexpr const char* kStreamNames[kStreamsPerRank] = {"kernels", "chunks", "sums"};

std::size_t index_of(int rank, StreamKind kind) {
  return static_cast<std::size_t>(stream_number(rank, kind));
}

std::string pass_text(Pass pass) { return std::string(pass_name(pass)) + ", "; }

}  // namespace

// Without ranks there is no first stream; a run has one rank at least.
IssuedStreams::IssuedStreams(std::vector<int> devices, int first_rank)
    : devices_(std::move(devices)), first_rank_(first_rank) {
  milestones_.resize(devices_.size() * kStreamsPerRank);
  for (const int device : devices_) {
    cuda::load_kernels(device);
    for (int kind = 0; kind < kStreamsPerRank; ++kind) {
      streams_.push_back(cuda::make_stream(device));
      ends_.push_back(cuda::make_event(device));
    }
  }
  clock_start_ = cuda::make_timed_event(devices_.front());
  clock_stop_ = cuda::make_timed_event(devices_.front());
}

void IssuedStreams::select(int rank) const { cuda::select_device(device_of(rank)); }

/// An event belongs to the device of the stream that records it.
std::vector<cuda::Event> IssuedStreams::make_events(const StreamProgram& program) {
  std::vector<cuda::Event> events(static_cast<std::size_t>(program.events));
  // The last operation that touched a slot, on each stream: an event stands for its end.
  std::vector<const StreamOperation*> last(streams_.size());  // of each stream, on a slot
  for (const StreamOperation& operation : program.operations) {
    const std::size_t stream = index_of(operation.rank - first_rank_, operation.stream);
    if (touches_slots(operation)) last[stream] = &operation;
    if (operation.action != StreamAction::record) continue;
    events_.push_back(cuda::make_event(device_of(operation.rank)));
    const cuda::Event event = events_.back().get();
    events[static_cast<std::size_t>(operation.event)] = event;
    if (last[stream]) {
      milestones_[stream].push_back({event, pass_text(program.pass) + place(*last[stream])});
    }
  }
  return events;
}

void IssuedStreams::record(const StreamOperation& operation, cuda::Event event) const {
  cuda::record_event(device_of(operation.rank), event, of(operation.rank, operation.stream),
                     place(operation));
}

void IssuedStreams::wait(const StreamOperation& operation, cuda::Event event) const {
  cuda::wait_for_event(device_of(operation.rank), event, of(operation.rank, operation.stream),
                       place(operation));
}

void IssuedStreams::fork() const {
  // A capture begins on the first stream, so every other stream has to depend on it by an event to
  // be part of the graph.
  const cuda::OwnedStream& first = streams_.front();
  cuda::record_event(first.device(), ends_.front().get(), first.get(), "fork");
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::wait_for_event(streams_[i].device(), ends_.front().get(), streams_[i].get(), "fork");
  }
}

void IssuedStreams::join() const {
  // All streams end in the first one: a capture that leaves a stream
  // unjoined is an error of CUDA's.
  const cuda::OwnedStream& first = streams_.front();
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::record_event(streams_[i].device(), ends_[i].get(), streams_[i].get(), "join");
    cuda::wait_for_event(first.device(), ends_[i].get(), first.get(), "join");
  }
}

void IssuedStreams::launch_as_graph(const std::function<void()>& issue) {
  // Captures this thread only: CUDA calls of other threads do not join the graph (decision 28).
  const cuda::OwnedStream& first = streams_.front();
  cuda::begin_capture(first.device(), first.get());
  try {
    issue();
  } catch (...) {  // a stream must not be left capturing
    cuda::drop_capture(first.device(), first.get());
    throw;
  }
  graph_ = cuda::end_capture(first.device(), first.get());
  launch_graph();
}

void IssuedStreams::launch_graph() const { cuda::launch(graph_, streams_.front().get()); }

void IssuedStreams::drop_graph() noexcept { graph_ = {}; }

void IssuedStreams::start_clock(std::int64_t hold_ns) const {
  const cuda::OwnedStream& first = streams_.front();
  cuda::select_device(first.device());
  if (hold_ns > 0) cuda::spin(hold_ns, first.get());
  cuda::record_event(first.device(), clock_start_.get(), first.get(), "clock");
}

void IssuedStreams::stop_clock() const {
  const cuda::OwnedStream& first = streams_.front();
  cuda::record_event(first.device(), clock_stop_.get(), first.get(), "clock");
}

double IssuedStreams::clocked_seconds() const {
  return cuda::seconds_between(clock_start_.get(), clock_stop_.get());
}

void IssuedStreams::finish(double timeout_s) const {
  // Without a deadline the driver waits, and this thread sleeps; with one it
  // is asked again and again.
  if (timeout_s == std::numeric_limits<double>::infinity()) {
    for (const int device : devices_) cuda::wait_for_device(device);
    return;
  }
  if (!cuda::ends_within(timeout_s, [&] { return have_ended(); })) {
    cuda::throw_stuck("devices", timeout_s, standing());
  }
}

bool IssuedStreams::end_within(double timeout_s) const noexcept {
  try {
    return cuda::ends_within(timeout_s, [&] { return have_ended(); });
  } catch (const std::exception&) {  // of the device: nothing goes on there any more
    return true;
  }
}

bool IssuedStreams::have_ended() const {
  return std::ranges::all_of(streams_, [](const cuda::OwnedStream& stream) {
    return cuda::has_ended(stream.device(), stream.get());
  });
}

/// The place of every stream that has not ended; unknown for a graph.
std::vector<std::string> IssuedStreams::standing() const {
  // Captured events are nodes of the graph, and never happen as events.
  if (graph_.get() != nullptr) {
    return {"a graph that has not ended, at no place that could be told"};
  }
  // Streams go on while they are asked: the answers are of slightly different moments.
  std::vector<std::string> unended;
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    if (cuda::has_ended(streams_[stream].device(), streams_[stream].get())) continue;
    unended.push_back(standing_of(stream));
  }
  return unended;
}

std::string IssuedStreams::standing_of(std::size_t stream) const {
  const std::vector<Milestone>& all = milestones_[stream];
  const int device = streams_[stream].device();
  // The first event that has not happened: events of one stream happen in order.
  const auto next = std::ranges::find_if(
      all, [&](const Milestone& one) { return !cuda::has_happened(device, one.event); });
  const int rank = first_rank_ + static_cast<int>(stream) / kStreamsPerRank;
  std::string text = "rank " + std::to_string(rank) + "'s stream of " +
                     kStreamNames[stream % kStreamsPerRank] + " on device " +
                     std::to_string(device) + ": ";
  text += next == all.begin() ? "nothing is known to have ended"
                              : "the last that ended is (" + std::prev(next)->operation + ")";
  return next == all.end() ? text : text + ", and not (" + next->operation + ")";
}

}  // namespace ringlab::ring
