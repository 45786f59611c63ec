// Begin and end of operations on the streams of devices, by events before and after each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/ring/streams/issued_streams.h"
#include "optimized/ring/streams/stream_program.h"
#include "reference/core/schedule/trace.h"

namespace ringlab::ring {

/// Events of one run on streams; graphs are not timed. Times are a device's own, from start() on,
/// to about half a microsecond. A copy is a receive of its target's rank and a send of its
/// source's, at the same time.
class DeviceTrace {
 public:
  /// `devices`: of each rank.
  DeviceTrace(const IssuedStreams& streams, std::vector<int> devices);

  /// Records the zero of all times, on a stream of every device.
  void start();
  /// Times `operation`, which `issue` puts on its stream and which moves `bytes`, if it is a copy.
  void around(const StreamOperation& operation, Pass pass, std::int64_t bytes,
              const std::function<void()>& issue);
  /// Events by rank, each in the order in which they began. All has ended.
  std::vector<std::vector<TraceEvent>> events() const;

 private:
  struct Timed {
    StreamOperation operation;
    Pass pass = Pass::forward;
    std::int64_t bytes = 0;
    cuda::OwnedEvent begin, end;
  };

  int device_of(const StreamOperation& operation) const {
    return devices_[static_cast<std::size_t>(operation.rank)];
  }
  cuda::OwnedEvent mark(const StreamOperation& operation) const;
  std::int64_t ns_of(const Timed& timed, const cuda::OwnedEvent& event) const;

  const IssuedStreams& streams_;
  const std::vector<int> devices_;
  std::map<int, cuda::OwnedEvent> starts_;  // by device
  std::vector<Timed> timed_;
};

}  // namespace ringlab::ring
