// Devices, streams, events and device memory as values that clean up after themselves.
//
// No CUDA header is seen here. Every call names its device and leaves another one current. Errors
// are MachineErrors that name device and call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cuda/stream.h"

struct CUevent_st;
struct CUgraphExec_st;

namespace ringlab::cuda {

/// cudaEvent_t.
using Event = CUevent_st*;
/// cudaGraphExec_t: a captured graph, ready to be launched.
using Graph = CUgraphExec_st*;

/// The number of devices; an error for none, and for a driver that is missing or too old.
int device_count();
/// A device's name; its compute capability, 90 for 9.0; and its place in the machine,
/// "0000:17:00.0".
struct DeviceFacts {
  std::string name;
  int compute_capability = 0;
  std::string bus = {};
};
DeviceFacts device_facts(int device);
/// Bytes of a device's memory, in all and free.
struct DeviceMemory {
  std::int64_t free = 0;
  std::int64_t all = 0;
};
DeviceMemory device_memory(int device);
/// Makes a device the current one of this thread.
void select_device(int device);
/// The current device of this thread.
int current_device();
/// Pairs (from, to) of the first `devices` that cannot reach each other's memory.
std::vector<std::pair<int, int>> unconnected_devices(int devices);
/// Lets the devices of these numbers read each other's memory where the machine can; where it
/// cannot, copies between them go through the host.
void connect_devices(int devices);

/// A value of one owner: `Traits::destroy(device, handle)` ends it.
template <class Handle, class Traits>
class DeviceOwned {
 public:
  DeviceOwned() = default;
  DeviceOwned(int device, Handle handle) : device_(device), handle_(handle) {}
  ~DeviceOwned() {
    if (handle_) Traits::destroy(device_, handle_);
  }
  DeviceOwned(DeviceOwned&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, Handle{})) {}
  DeviceOwned& operator=(DeviceOwned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  DeviceOwned(const DeviceOwned&) = delete;
  DeviceOwned& operator=(const DeviceOwned&) = delete;

  int device() const { return device_; }
  Handle get() const { return handle_; }

 private:
  int device_ = 0;
  Handle handle_ = {};
};

struct StreamTraits {
  static void destroy(int device, Stream stream) noexcept;
};
struct EventTraits {
  static void destroy(int device, Event event) noexcept;
};
struct MemoryTraits {
  static void destroy(int device, std::byte* memory) noexcept;
};
struct GraphTraits {
  /// Destroys a graph; a launch that runs goes on to its end.
  static void destroy(int device, Graph graph) noexcept;
};
using OwnedStream = DeviceOwned<Stream, StreamTraits>;
using OwnedEvent = DeviceOwned<Event, EventTraits>;
using OwnedMemory = DeviceOwned<std::byte*, MemoryTraits>;
using OwnedGraph = DeviceOwned<Graph, GraphTraits>;

/// A stream that does not wait for the default one.
OwnedStream make_stream(int device);
/// An event without a time, which is the cheapest to record.
OwnedEvent make_event(int device);
/// An event that knows when it happened.
OwnedEvent make_timed_event(int device);
/// The time between two timed events of the same device that have happened.
double seconds_between(Event first, Event second);
/// Memory by cudaMalloc. When there is not enough, the error says how much was wanted and how much
/// is free.
OwnedMemory allocate(int device, std::int64_t bytes);

/// Copies from host to device and back, and waits.
void copy_in(int device, std::byte* to, std::span<const std::byte> from);
void copy_out(int device, const std::byte* from, std::span<std::byte> to);
/// Fills memory on `stream` of `device`.
void fill_bytes(int device, std::byte* memory, std::byte value, std::int64_t bytes, Stream stream);
inline void fill_zeros(int device, std::byte* memory, std::int64_t bytes, Stream stream) {
  fill_bytes(device, memory, std::byte{0}, bytes, stream);
}
/// Memory of a device.
struct DevicePlace {
  int device = 0;
  std::byte* memory = nullptr;
};
/// Copies on `stream`, which may belong to either device; also within one.
void copy_between(DevicePlace to, DevicePlace from, std::int64_t bytes, Stream stream);
/// Records the event: it stands for all work that `stream` was given so far. Errors name `where`.
void record_event(int device, Event event, Stream stream, const std::string& where);
/// Makes later work of `stream` wait for the work that the event stands for, of whatever device.
void wait_for_event(int device, Event event, Stream stream, const std::string& where);

/// True when all work that the event stands for has ended; its errors are thrown here. Not for
/// captured events.
bool has_happened(int device, Event event);

/// Loads all kernels of this program that the device can run, once. Otherwise the driver would load
/// each at its first launch, which may wait for running work and is impossible during a capture.
void load_kernels(int device);

/// Begins a capture: work that this thread puts on `stream`, and on streams that wait for its
/// events, is not done but joins a graph. Until it ends the thread may neither allocate nor wait.
void begin_capture(int device, Stream stream);
/// Ends a capture; an error unless all streams were joined to the stream that it began with.
OwnedGraph end_capture(int device, Stream stream);
/// Ends a capture without a graph.
void drop_capture(int device, Stream stream) noexcept;
/// Runs the graph after all earlier work of the stream; may be called again and again.
void launch(const OwnedGraph& graph, Stream stream);

/// True when all work of the stream has ended; its errors are thrown here.
bool has_ended(int device, Stream stream);
/// Waits until all work of all streams of the device has ended; its errors are thrown here.
void wait_for_device(int device);

/// `count` elements on a device, not initialised.
template <class T>
class DeviceTensor {
 public:
  DeviceTensor() = default;
  DeviceTensor(int device, std::int64_t count)
      : count_(count), memory_(allocate(device, count * static_cast<std::int64_t>(sizeof(T)))) {}
  DeviceTensor(int device, std::span<const T> values)
      : DeviceTensor(device, static_cast<std::int64_t>(values.size())) {
    write(0, values);
  }

  T* data() const { return reinterpret_cast<T*>(memory_.get()); }
  std::int64_t size() const { return count_; }
  std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(T)); }
  int device() const { return memory_.device(); }

  void write(std::int64_t first, std::span<const T> values) {
    copy_in(device(), reinterpret_cast<std::byte*>(data() + first), std::as_bytes(values));
  }
  void read(std::int64_t first, std::span<T> values) const {
    copy_out(device(), reinterpret_cast<const std::byte*>(data() + first),
             std::as_writable_bytes(values));
  }

 private:
  std::int64_t count_ = 0;
  OwnedMemory memory_;
};

}  // namespace ringlab::cuda
