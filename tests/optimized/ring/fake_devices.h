// Devices that are plain memory: work is done when it is issued, or when the graph that it became
// part of runs (fake_streams.h), and nothing may be left behind.
// Threads may use them side by side, each with a current device of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "optimized/cuda/device.h"
#include "optimized/cuda/stream.h"

namespace ringlab::ring {

/// What has happened on all devices since the program began.
struct FakeDevices {
  int devices = 3;  ///< how many there are
  std::int64_t allocations = 0;
  std::int64_t live_bytes = 0;
  std::int64_t live_handles = 0;  ///< streams and events
  std::int64_t most_bytes = std::int64_t{1} << 40;
  std::int64_t peak_bytes = 0;                      ///< of live_bytes
  std::int64_t free_bytes = std::int64_t{1} << 40;  ///< of each device, as it says
  std::int64_t copies_between = 0;                  ///< from one device to another
  std::int64_t spun_ns = 0;
  int graphs = 0;          ///< how many were launched
  int graphs_cut_off = 0;  ///< whose memory was freed while they ran
  /// Whether a stream's work has ended; what was issued is done, so it has, unless set.
  std::function<bool(cuda::Stream)> has_ended = {};
  /// Whether what an event stands for has ended; it has, unless set.
  std::function<bool(cuda::Event)> has_happened = {};
  /// Pairs that cannot reach each other's memory.
  std::vector<std::pair<int, int>> unconnected = {};
  /// Called before memory is given back.
  std::function<void(const std::byte* memory, std::int64_t bytes)> on_free = {};
};
FakeDevices& fake_devices();

/// The event was recorded: a microsecond after the one before.
void note_recorded(cuda::Event event);

}  // namespace ringlab::ring
