// Real streams and events for the operations of a stream program that order others.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring {

/// The streams of all ranks. A graph begins and ends on the first one.
class IssuedStreams {
 public:
  /// `devices`: of each rank, from `first_rank` on. Loads all kernels: neither a capture nor work
  /// beside other work may wait for loading.
  explicit IssuedStreams(std::vector<int> devices, int first_rank = 0);

  cuda::Stream of(int rank, StreamKind kind) const {
    return streams_[static_cast<std::size_t>(stream_number(rank - first_rank_, kind))].get();
  }
  /// Makes the device of `rank` the current one.
  void select(int rank) const;
  /// Events for the program's records and waits; they live as long as this.
  std::vector<cuda::Event> make_events(const StreamProgram& program);
  void record(const StreamOperation& operation, cuda::Event event) const;
  void wait(const StreamOperation& operation, cuda::Event event) const;

  /// Makes all streams wait for the work that the first one has been given.
  void fork() const;
  /// Makes the first stream wait for the work that all have been given.
  void join() const;
  /// Captures what `issue` puts on the streams as a graph, and launches it on the first stream.
  void launch_as_graph(const std::function<void()>& issue);
  /// Launches the captured graph once more.
  void launch_graph() const;
  /// Destroys the captured graph; a launch that runs goes on to its end. NCCL's communicators end
  /// only when no graph holds them.
  void drop_graph() noexcept;
  /// Starts the device's clock, for the work of all streams after a fork(); the first stream stands
  /// still for `hold_ns` before.
  void start_clock(std::int64_t hold_ns) const;
  /// Stops the clock, after a join() or a launch.
  void stop_clock() const;
  /// Seconds that the clock ran. Call it when all work has ended.
  double clocked_seconds() const;
  /// Waits until all work has ended; DeviceStuck, which says where each stream stands, when it has
  /// not within `timeout_s`. Without a deadline the driver waits.
  void finish(double timeout_s = std::numeric_limits<double>::infinity()) const;
  /// True when all work ends, well or not, within `timeout_s`: for runs that are broken off.
  bool end_within(double timeout_s) const noexcept;

 private:
  /// The end of an operation on a slot, where the program records an event of it.
  struct Milestone {
    cuda::Event event = nullptr;
    std::string operation;
  };

  bool have_ended() const;
  /// The place of every stream that has not ended, as text.
  std::vector<std::string> standing() const;
  std::string standing_of(std::size_t stream) const;
  int device_of(int rank) const { return devices_[static_cast<std::size_t>(rank - first_rank_)]; }

  std::vector<int> devices_;
  int first_rank_;
  std::vector<cuda::OwnedStream> streams_;
  cuda::OwnedEvent clock_start_, clock_stop_;
  std::vector<cuda::OwnedEvent> ends_;              // of streams, for fork() and join()
  std::vector<cuda::OwnedEvent> events_;            // of programs
  std::vector<std::vector<Milestone>> milestones_;  // by stream, in order
  cuda::OwnedGraph graph_;
};

}  // namespace ringlab::ring
