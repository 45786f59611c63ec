// In place of optimized/cuda/device.cu and stream_kernels.cu, with fake_streams.cpp.
#include "tests/optimized/ring/fake_devices.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "optimized/cuda/device.h"
#include "optimized/cuda/stream_kernels.h"
#include "reference/core/machine/machine_error.h"
#include "tests/optimized/ring/fake_streams.h"

namespace ringlab::ring {

FakeDevices& fake_devices() {
  static FakeDevices devices;
  return devices;
}

}  // namespace ringlab::ring

namespace ringlab::cuda {
namespace {

using ring::fake_devices;
using ring::FakeDevices;

/// Sizes and devices of what is allocated.
struct Piece {
  std::int64_t bytes = 0;
  int device = 0;
};
std::map<const std::byte*, Piece>& pieces() {
  static std::map<const std::byte*, Piece> all;
  return all;
}

// Of all that is counted and of all pieces. Work itself is done outside of it.
std::mutex counting;
thread_local int selected_device = -1;
thread_local std::set<Stream> streams_of_thread;

void must(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}
/// The bytes lie inside one piece of this device's memory.
void must_lie_on(int device, const std::byte* memory, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::scoped_lock lock(counting);
  auto at = pieces().upper_bound(memory);
  must(at != pieces().begin(), "memory that nobody allocated");
  --at;
  must(memory + bytes <= at->first + at->second.bytes, "bytes beyond what was allocated");
  must(at->second.device == device, "memory of another device");
}

std::map<Event, std::int64_t> recorded;  // in microseconds
std::int64_t last_recorded = 0;

std::uintptr_t next_handle = 16;
template <class Handle>
Handle new_handle() {
  const std::scoped_lock lock(counting);
  ++fake_devices().live_handles;
  return reinterpret_cast<Handle>(next_handle += 16);
}

}  // namespace

int device_count() { return fake_devices().devices; }
void select_device(int device) {
  must(device >= 0 && device < fake_devices().devices, "a device that is not there");
  selected_device = device;
}
int current_device() { return selected_device; }
void connect_devices(int) {}
std::vector<std::pair<int, int>> unconnected_devices(int) { return fake_devices().unconnected; }
bool has_happened(int, Event event) {
  return !fake_devices().has_happened || fake_devices().has_happened(event);
}

DeviceMemory device_memory(int) { return {fake_devices().free_bytes, std::int64_t{1} << 40}; }
DeviceFacts device_facts(int device) { return {"fake", 80, "bus " + std::to_string(device)}; }

void StreamTraits::destroy(int, Stream stream) noexcept {
  streams_of_thread.erase(stream);
  const std::scoped_lock lock(counting);
  --fake_devices().live_handles;
}
void EventTraits::destroy(int, Event event) noexcept {
  const std::scoped_lock lock(counting);
  recorded.erase(event);
  --fake_devices().live_handles;
}
void MemoryTraits::destroy(int, std::byte* memory) noexcept {
  const int stopped = ring::stop_graphs_of_thread();
  const std::scoped_lock lock(counting);
  fake_devices().graphs_cut_off += stopped;
  if (fake_devices().on_free) fake_devices().on_free(memory, pieces().at(memory).bytes);
  fake_devices().live_bytes -= pieces().at(memory).bytes;
  pieces().erase(memory);
  ::operator delete (memory, std::align_val_t{16});
}

OwnedStream make_stream(int device) {
  const auto stream = new_handle<Stream>();
  streams_of_thread.insert(stream);
  return {device, stream};
}
OwnedEvent make_event(int device) { return {device, new_handle<Event>()}; }
OwnedEvent make_timed_event(int device) { return make_event(device); }
double seconds_between(Event first, Event second) {
  const std::scoped_lock lock(counting);
  return 1e-6 * static_cast<double>(recorded.at(second) - recorded.at(first));
}

/// NaN at first, whatever the type.
OwnedMemory allocate(int device, std::int64_t bytes) {
  if (bytes == 0) return {device, nullptr};
  ring::must_not_capture("memory is allocated");
  const std::scoped_lock lock(counting);
  FakeDevices& all = fake_devices();
  if (all.live_bytes + bytes > all.most_bytes) {
    throw MachineError({.where = "device", .expected = "memory", .actual = "none"});
  }
  auto* memory = static_cast<std::byte*>(
      ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{16}));
  std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
  pieces()[memory] = {bytes, device};
  all.live_bytes += bytes;
  all.peak_bytes = std::max(all.peak_bytes, all.live_bytes);
  ++all.allocations;
  return {device, memory};
}

void copy_in(int device, std::byte* to, std::span<const std::byte> from) {
  ring::must_not_capture("memory is written");
  ring::must_not_run("memory is written");
  must_lie_on(device, to, static_cast<std::int64_t>(from.size()));
  std::ranges::copy(from, to);
}
void copy_out(int device, const std::byte* from, std::span<std::byte> to) {
  ring::must_not_capture("memory is read");
  ring::must_not_run("memory is read");
  must_lie_on(device, from, static_cast<std::int64_t>(to.size()));
  std::copy_n(from, to.size(), to.begin());
}
void fill_bytes(int device, std::byte* memory, std::byte value, std::int64_t bytes, Stream stream) {
  must_lie_on(device, memory, bytes);
  ring::put_on(stream, [=] { std::fill_n(memory, bytes, value); });
}
void copy_between(DevicePlace to, DevicePlace from, std::int64_t bytes, Stream stream) {
  must_lie_on(to.device, to.memory, bytes);
  must_lie_on(from.device, from.memory, bytes);
  ring::put_on(stream, [=] { std::copy_n(from.memory, bytes, to.memory); });
  const std::scoped_lock lock(counting);
  fake_devices().copies_between += to.device != from.device ? 1 : 0;
}
bool has_ended(int, Stream stream) {
  if (!ring::graphs_have_ended(stream)) return false;
  const auto& has_ended_now = fake_devices().has_ended;
  if (!has_ended_now) return true;
  // What is waited for was joined to all others that this thread has.
  return has_ended_now(stream) && std::ranges::all_of(streams_of_thread, has_ended_now);
}
void wait_for_device(int device) {
  select_device(device);
  ring::end_graphs_of_thread();
}

void add_values(float* to, const float* from, std::int64_t count, Stream stream) {
  must_lie_on(selected_device, reinterpret_cast<std::byte*>(to), count * 4);
  must_lie_on(selected_device, reinterpret_cast<const std::byte*>(from), count * 4);
  ring::put_on(stream, [=] {
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
  });
}
void spin(std::int64_t nanoseconds, Stream stream) {
  ring::put_on(
      stream, [=] { fake_devices().spun_ns += nanoseconds; }, nanoseconds);
}

}  // namespace ringlab::cuda

namespace ringlab::ring {

void note_recorded(cuda::Event event) {
  const std::scoped_lock lock(cuda::counting);
  cuda::recorded[event] = ++cuda::last_recorded;
}

}  // namespace ringlab::ring
