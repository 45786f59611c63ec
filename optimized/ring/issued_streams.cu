#include <string>
#include <utility>

#include "optimized/cuda/check_cuda.h"
#include "optimized/ring/issued_streams.h"

namespace ringlab::ring {

using cuda::check_cuda;

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
  select(operation.rank);
  check_cuda(cudaEventRecord(event, of(operation.rank, operation.stream)), "cudaEventRecord",
             place(operation));
}

void IssuedStreams::wait(const StreamOperation& operation, cuda::Event event) const {
  select(operation.rank);
  check_cuda(cudaStreamWaitEvent(of(operation.rank, operation.stream), event, 0),
             "cudaStreamWaitEvent", place(operation));
}

void IssuedStreams::fork() {
  cuda::select_device(streams_.front().device());
  check_cuda(cudaEventRecord(ends_.front().get(), streams_.front().get()), "cudaEventRecord",
             "fork");
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::select_device(streams_[i].device());
    check_cuda(cudaStreamWaitEvent(streams_[i].get(), ends_.front().get(), 0),
               "cudaStreamWaitEvent", "fork");
  }
}

void IssuedStreams::join() {
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cuda::select_device(streams_[i].device());
    check_cuda(cudaEventRecord(ends_[i].get(), streams_[i].get()), "cudaEventRecord", "join");
    cuda::select_device(streams_.front().device());
    check_cuda(cudaStreamWaitEvent(streams_.front().get(), ends_[i].get(), 0),
               "cudaStreamWaitEvent", "join");
  }
}

void IssuedStreams::launch_as_graph(const std::function<void()>& issue) {
  const cuda::Stream origin = streams_.front().get();
  const int device = streams_.front().device();
  cuda::select_device(device);
  check_cuda(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture", "graph");
  cudaGraph_t captured = nullptr;
  try {
    issue();
  } catch (...) {  // a stream must not be left capturing
    cudaStreamEndCapture(origin, &captured);
    if (captured != nullptr) cudaGraphDestroy(captured);
    throw;
  }
  cuda::select_device(device);
  check_cuda(cudaStreamEndCapture(origin, &captured), "cudaStreamEndCapture", "graph");
  cudaGraphExec_t launchable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&launchable, captured, 0);
  cudaGraphDestroy(captured);
  check_cuda(made, "cudaGraphInstantiate", "graph");
  graph_ = cuda::OwnedGraph(device, launchable);
  check_cuda(cudaGraphLaunch(launchable, origin), "cudaGraphLaunch", "graph");
}

void IssuedStreams::finish() const {
  for (const int device : devices_) cuda::wait_for_device(device);
}

}  // namespace ringlab::ring
