#include "optimized/ring/issued_streams.h"

#include <utility>

namespace ringlab::ring {

IssuedStreams::IssuedStreams(std::vector<int> devices, int first_rank)
    : devices_(std::move(devices)), first_rank_(first_rank) {
  for (const int device : devices_) {
    for (int kind = 0; kind < kStreamsPerRank; ++kind) {
      streams_.push_back(cuda::make_stream(device));
      ends_.push_back(cuda::make_event(device));
    }
  }
}

void IssuedStreams::select(int rank) const { cuda::select_device(device_of(rank)); }

/// An event belongs to the device of the stream that records it.
std::vector<cuda::Event> IssuedStreams::make_events(const StreamProgram& program) {
  std::vector<cuda::Event> events(static_cast<std::size_t>(program.events));
  for (const StreamOperation& operation : program.operations) {
    if (operation.action != StreamAction::record) continue;
    events_.push_back(cuda::make_event(device_of(operation.rank)));
    events[static_cast<std::size_t>(operation.event)] = events_.back().get();
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
  const cuda::OwnedStream& first = streams_.front();
  cuda::record_event(first.device(), ends_.front().get(), first.get(), "fork");
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::wait_for_event(streams_[i].device(), ends_.front().get(), streams_[i].get(), "fork");
  }
}

void IssuedStreams::join() const {
  const cuda::OwnedStream& first = streams_.front();
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::record_event(streams_[i].device(), ends_[i].get(), streams_[i].get(), "join");
    cuda::wait_for_event(first.device(), ends_[i].get(), first.get(), "join");
  }
}

void IssuedStreams::launch_as_graph(const std::function<void()>& issue) {
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

void IssuedStreams::finish() const {
  for (const int device : devices_) cuda::wait_for_device(device);
}

}  // namespace ringlab::ring
