// Runs one kernel type on the device of a rank.
#pragma once

#include <memory>
#include <string>

#include "reference/core/dtype.h"
#include "stages/common/launch_turn.h"
#include "stages/common/stream_kernel.h"
#include "stages/cuda/cuda_block.cuh"
#include "stages/cuda/device_arrays.cuh"
#include "stages/cuda/kernels.h"

namespace ringlab::stages::cuda {

/// `spill` is null when the block's memory fits into shared memory, else global memory for it.
template <class Kernel>
__global__ void __launch_bounds__(1024)
    run_kernel(const Kernel kernel, std::byte* spill, std::size_t bytes_per_block) {
  extern __shared__ __align__(16) std::byte fast[];
  CudaBlock block(spill == nullptr ? fast : spill + blockIdx.x * bytes_per_block);
  kernel(block);
}

/// Most shared memory one block may have on the current device.
inline std::size_t shared_memory_limit(int rank) {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice", rank);
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute", rank);
  return static_cast<std::size_t>(bytes);
}

/// The kernel's own code says what its blocks work in, and reads its arrays: where the host can.
template <class Kernel>
BlockMemory memory_of(const Kernel& kernel, const StreamLaunch& launch) {
  MeasuringBlock measured(launch.threads);
  kernel(measured);
  const std::size_t bytes = (measured.shared_bytes() + 15) / 16 * 16;
  const bool fits = bytes <= shared_memory_limit(launch.rank);
  return {.block = static_cast<std::int64_t>(bytes),
          .scratch = fits ? 0 : static_cast<std::int64_t>(bytes) * launch.blocks};
}

/// Puts the kernel, whose arrays lie on the device, on the stream (null: the default one).
template <class Kernel>
void put_on_stream(const Kernel& kernel, const StreamLaunch& launch) {
  const auto bytes = static_cast<std::size_t>(launch.memory.block);
  const bool fits = launch.memory.scratch == 0;
  // The limit is always the most there may be: ranks are threads, and what one sets holds for all.
  check_cuda(cudaFuncSetAttribute(run_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_memory_limit(launch.rank))),
             "cudaFuncSetAttribute", launch.rank);
  run_kernel<Kernel><<<static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.threads),
                       fits ? bytes : 0, launch.stream>>>(kernel, launch.scratch, bytes);
  check_cuda(cudaGetLastError(), "kernel launch", launch.rank);
}

template <class Kernel>
void launch_kernel(const void* host_kernel, const CudaLaunch& launch) {
  LaunchTurn turn("rank " + std::to_string(launch.rank) + ", stage " + launch.stage);
  // Ranks have the devices in turn: arrays come from the host, and go back to it.
  ringlab::cuda::select_device(launch.rank % ringlab::cuda::device_count());
  Kernel kernel = *static_cast<const Kernel*>(host_kernel);
  StreamLaunch on_default{.blocks = launch.blocks, .threads = launch.threads, .rank = launch.rank};
  on_default.memory = memory_of(kernel, on_default);
  const auto arrays = std::make_shared<DeviceArrays>(launch.rank);
  kernel.for_each_array([&](auto& array) { arrays->move_in(array); });
  on_default.scratch = static_cast<std::byte*>(
      arrays->allocate(static_cast<std::size_t>(on_default.memory.scratch)));
  put_on_stream(kernel, on_default);
  const int device = ringlab::cuda::current_device();
  turn.wait(
      launch.timeout_s, [device] { return ringlab::cuda::has_ended(device, nullptr); }, arrays);
  arrays->copy_back();
}

/// Adds the four input types of a kernel.
template <template <class> class Kernel>
void add_kernel(Kernels& table) {
  table[typeid(Kernel<double>)] = launch_kernel<Kernel<double>>;
  table[typeid(Kernel<float>)] = launch_kernel<Kernel<float>>;
  table[typeid(Kernel<Half>)] = launch_kernel<Kernel<Half>>;
  table[typeid(Kernel<BFloat16>)] = launch_kernel<Kernel<BFloat16>>;
}

}  // namespace ringlab::stages::cuda
