// The launch of the portable kernels, and the checks before it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <string>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/kernel_list.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/warp_tiles.cuh"
#include "optimized/cuda/stream.h"
#include "reference/core/error.h"

namespace ringlab::cuda {

/// An attribute of the current device; `kernel` is for the error.
inline int attribute_here(cudaDeviceAttr which, const char* kernel) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice", kernel);
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute", kernel);
  return value;
}
/// The compute capability of the current device: 90 for 9.0.
inline int capability_here(const char* kernel) {
  return 10 * attribute_here(cudaDevAttrComputeCapabilityMajor, kernel) +
         attribute_here(cudaDevAttrComputeCapabilityMinor, kernel);
}

inline std::int64_t tiles_of(std::int64_t rows, std::int64_t tile_rows) {
  return (rows + tile_rows - 1) / tile_rows;
}

/// Input error where the kernels do not take the shape.
inline void check_portable(const BlockShape& shape, const char* kernel) {
  const std::string reason = why_not_portable(shape);
  if (reason.empty()) return;
  throw_input_error({.where = kernel,
                     .expected = "head_dim and v_dim multiples of 8 up to 256, heads that group",
                     .actual = reason,
                     .hint = "The kernels of the stages take every shape."});
}

/// Calls visit.template operator()<kChannels>() with the padded channels for a shape.
template <class Visitor>
void with_padded_channels(const BlockShape& shape, Visitor&& visit) {
  switch (padded_channels(shape.head_dim, shape.v_dim)) {
    case 64:
      return visit.template operator()<64>();
    case 128:
      return visit.template operator()<128>();
    default:
      return visit.template operator()<256>();
  }
}

struct LaunchPlan {
  const char* name;
  std::int64_t blocks;
  int threads;
  int shared_bytes;
  Stream stream;
  int cluster = 1;  ///< blocks that are on the device together, a divisor of `blocks` (sm_90)
};

/// The plan as CUDA wants it. Must not move, since it points to itself.
struct ClusterLaunch {
  explicit ClusterLaunch(const LaunchPlan& plan) {
    config.gridDim = dim3(static_cast<unsigned>(plan.blocks));
    config.blockDim = dim3(static_cast<unsigned>(plan.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(plan.shared_bytes);
    config.stream = plan.stream;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(plan.cluster), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = plan.cluster > 1 ? 1 : 0;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;

  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
};

/// Puts a kernel that is launched somewhere on the list of load_kernels(), before main() begins.
template <auto kKernel>
inline const bool kIsListed = list_kernel(reinterpret_cast<const void*>(kKernel));

/// Launches a kernel; does nothing for no blocks. Input error for 2^31 blocks or more.
template <auto kKernel, class Call>
void launch_kernel(const LaunchPlan& plan, const Call& call) {
  static_cast<void>(&kIsListed<kKernel>);
  if (plan.blocks == 0) return;
  if (plan.blocks > std::numeric_limits<std::int32_t>::max()) {
    throw_input_error({.where = plan.name,
                       .expected = "less than 2^31 tiles of queries times heads",
                       .actual = std::to_string(plan.blocks),
                       .hint = "Split the batch."});
  }
  if (plan.shared_bytes > 0) {
    check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kKernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes),
               "cudaFuncSetAttribute", plan.name);
  }
  const ClusterLaunch launch(plan);
  check_cuda(cudaLaunchKernelEx(&launch.config, kKernel, call), "launch", plan.name);
}

}  // namespace ringlab::cuda
