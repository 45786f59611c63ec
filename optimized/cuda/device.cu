#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/device.h"
#include "optimized/cuda/driver_check.h"
#include "optimized/cuda/kernel_list.h"

namespace ringlab::cuda {
namespace {

std::string name_of(int device) { return "device " + std::to_string(device); }

std::string mib(std::size_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

[[noreturn]] void throw_out_of_memory(int device, std::size_t bytes) {
  std::size_t free_bytes = 0, all_bytes = 0;
  const bool known = cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess;
  throw MachineError(
      {.where = name_of(device),
       .expected = mib(bytes) + " of memory in one piece",
       .actual = known ? mib(free_bytes) + " free of " + mib(all_bytes) : "out of memory",
       .hint = "Use fewer tokens or slots, more devices where ranks are devices, or free what "
               "others hold"});
}

/// Checks the driver before the runtime does, whose error for an old driver names no versions.
void check_driver() {
  int driver = 0, runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", "devices");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", "devices");
  if (const auto problem = driver_problem(driver, runtime)) throw MachineError(*problem);
}

/// True when a query says that all is done; false while it is not.
bool is_ready(cudaError_t status, const char* call, int device) {
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // clears it, so that the next launch does not report it
    return false;
  }
  check_cuda(status, call, name_of(device));
  return true;
}

bool can_reach(int device, int peer) {
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer",
             name_of(device));
  return can != 0;
}

/// Loads a kernel, unless it is for other GPUs. Asking for its attributes does it (CUDA programming
/// guide, "Lazy loading").
void load(const void* kernel, int device) {
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, kernel);
  if (found == cudaErrorNoKernelImageForDevice || found == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();  // it was dealt with
    return;
  }
  check_cuda(found, "cudaFuncGetAttributes", name_of(device));
}

}  // namespace

int device_count() {
  check_driver();
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaErrorNoDevice) check_cuda(status, "cudaGetDeviceCount", "devices");
  if (count > 0) return count;
  throw MachineError({.where = "devices",
                      .expected = "a CUDA device",
                      .actual = "none",
                      .hint = "Use a machine with an NVIDIA GPU"});
}

DeviceFacts device_facts(int device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties",
             name_of(device));
  char bus[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "cudaDeviceGetPCIBusId",
             name_of(device));
  return {properties.name, 10 * properties.major + properties.minor, bus};
}

DeviceMemory device_memory(int device) {
  select_device(device);
  std::size_t free_bytes = 0, all_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", name_of(device));
  return {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(all_bytes)};
}

void select_device(int device) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice", name_of(device));
}

int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice", "devices");
  return device;
}

std::vector<std::pair<int, int>> unconnected_devices(int devices) {
  std::vector<std::pair<int, int>> pairs;
  for (int device = 0; device < devices; ++device) {
    for (int peer = 0; peer < devices; ++peer) {
      if (peer != device && !can_reach(device, peer)) pairs.emplace_back(device, peer);
    }
  }
  return pairs;
}

// Connects both ways: a device gives access to one other device at a time.
void connect_devices(int devices) {
  for (int device = 0; device < devices; ++device) {
    select_device(device);
    for (int peer = 0; peer < devices; ++peer) {
      if (peer == device || !can_reach(device, peer)) continue;
      const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
      cudaGetLastError();  // "already enabled" is no error of the next launch
      if (status == cudaErrorPeerAccessAlreadyEnabled) continue;
      check_cuda(status, "cudaDeviceEnablePeerAccess", name_of(device));
    }
  }
}

void StreamTraits::destroy(int device, Stream stream) noexcept {
  // Errors are ignored: a destructor has nobody to report them to.
  cudaSetDevice(device);
  cudaStreamDestroy(stream);
}
void EventTraits::destroy(int device, Event event) noexcept {
  cudaSetDevice(device);
  cudaEventDestroy(event);
}
void MemoryTraits::destroy(int device, std::byte* memory) noexcept {
  cudaSetDevice(device);
  cudaFree(memory);
}
void GraphTraits::destroy(int device, Graph graph) noexcept {
  cudaSetDevice(device);
  cudaGraphExecDestroy(graph);
}

OwnedStream make_stream(int device) {
  select_device(device);
  // Non-blocking: this stream and the legacy default stream do not wait for each other.
  Stream stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate",
             name_of(device));
  return {device, stream};
}

OwnedEvent make_event(int device) {
  select_device(device);
  Event event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate",
             name_of(device));
  return {device, event};
}

OwnedEvent make_timed_event(int device) {
  select_device(device);
  Event event = nullptr;
  check_cuda(cudaEventCreate(&event), "cudaEventCreate", name_of(device));
  return {device, event};
}

double seconds_between(Event first, Event second) {
  float milliseconds = 0;  // CUDA's unit; about half a microsecond of resolution
  check_cuda(cudaEventElapsedTime(&milliseconds, first, second), "cudaEventElapsedTime", "events");
  return 1e-3 * static_cast<double>(milliseconds);
}

OwnedMemory allocate(int device, std::int64_t bytes) {
  select_device(device);
  // An empty chunk has no memory, and nothing to be freed.
  if (bytes == 0) return {device, nullptr};
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it was dealt with
    throw_out_of_memory(device, static_cast<std::size_t>(bytes));
  }
  check_cuda(status, "cudaMalloc", name_of(device));
  return {device, static_cast<std::byte*>(memory)};
}

void copy_in(int device, std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  select_device(device);
  check_cuda(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyHostToDevice),
             "cudaMemcpy to the device", name_of(device));
  // Without this wait a copy from memory that is not pinned may return before the last bytes are
  // there (CUDA driver API, "API synchronization behavior"); streams that ignore the default one
  // would not wait for them.
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize", name_of(device));
}

void copy_out(int device, const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return;
  select_device(device);
  check_cuda(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost),
             "cudaMemcpy from the device", name_of(device));
}

void fill_bytes(int device, std::byte* memory, std::byte value, std::int64_t bytes, Stream stream) {
  if (bytes == 0) return;
  select_device(device);
  check_cuda(
      cudaMemsetAsync(memory, std::to_integer<int>(value), static_cast<std::size_t>(bytes), stream),
      "cudaMemsetAsync", name_of(device));
}

void copy_between(DevicePlace to, DevicePlace from, std::int64_t bytes, Stream stream) {
  if (bytes == 0) return;
  // A copy within a device needs no peer access.
  if (to.device == from.device) {
    select_device(to.device);
    return check_cuda(cudaMemcpyAsync(to.memory, from.memory, static_cast<std::size_t>(bytes),
                                      cudaMemcpyDeviceToDevice, stream),
                      "cudaMemcpyAsync", name_of(to.device));
  }
  // The driver copies directly where connect_devices() has connected, else through the host.
  check_cuda(cudaMemcpyPeerAsync(to.memory, to.device, from.memory, from.device,
                                 static_cast<std::size_t>(bytes), stream),
             "cudaMemcpyPeerAsync", name_of(from.device) + " to " + name_of(to.device));
}

void record_event(int device, Event event, Stream stream, const std::string& where) {
  select_device(device);
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord", where);
}

void wait_for_event(int device, Event event, Stream stream, const std::string& where) {
  select_device(device);
  check_cuda(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent", where);
}

bool has_happened(int device, Event event) {
  select_device(device);
  return is_ready(cudaEventQuery(event), "cudaEventQuery", device);
}

void load_kernels(int device) {
  static std::mutex mutex;
  static std::set<int> loaded;  // devices
  const std::scoped_lock lock(mutex);
  if (loaded.contains(device)) return;
  select_device(device);
  for (const void* const kernel : listed_kernels()) load(kernel, device);
  loaded.insert(device);
}

// The mode must not restrict other threads: NCCL launches from one of its own, which may allocate.
void begin_capture(int device, Stream stream) {
  select_device(device);
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture", name_of(device));
}

OwnedGraph end_capture(int device, Stream stream) {
  select_device(device);
  cudaGraph_t captured = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture", name_of(device));
  // Only the executable graph is launched; the captured graph is its description.
  cudaGraphExec_t launchable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&launchable, captured, 0);
  cudaGraphDestroy(captured);
  check_cuda(made, "cudaGraphInstantiate", name_of(device));
  return {device, launchable};
}

void drop_capture(int device, Stream stream) noexcept {
  cudaSetDevice(device);
  // Ends the capture, valid or not.
  cudaGraph_t captured = nullptr;
  cudaStreamEndCapture(stream, &captured);
  if (captured != nullptr) cudaGraphDestroy(captured);
  cudaGetLastError();  // clears the error, so that the next launch does not report it
}

void launch(const OwnedGraph& graph, Stream stream) {
  select_device(graph.device());
  check_cuda(cudaGraphLaunch(graph.get(), stream), "cudaGraphLaunch", name_of(graph.device()));
}

bool has_ended(int device, Stream stream) {
  select_device(device);
  return is_ready(cudaStreamQuery(stream), "cudaStreamQuery", device);
}

void wait_for_device(int device) {
  select_device(device);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize", name_of(device));
}

}  // namespace ringlab::cuda
