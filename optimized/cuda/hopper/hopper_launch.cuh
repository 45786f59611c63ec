// The launch of the forward kernels for Hopper, and the checks before it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/hopper/forward_hopper_shapes.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable_launch.cuh"
#include "optimized/cuda/stream.h"
#include "reference/core/error.h"

namespace ringlab::cuda {

/// static: each file that launches the kernel has one of its own, registered once.
template <class Tile>
static __global__ void __launch_bounds__(Tile::kThreads, 1)
    forward_hopper_kernel(const __grid_constant__ HopperParams<typename Tile::Element> params) {
  forward_hopper_tiles<Tile>(params);
}

/// Input error where the kernel does not take the call on the current device.
template <class Element>
void check_hopper_call(const ForwardCall<Element>& call) {
  const std::string reason =
      why_not_hopper(call.shape, call.scale, capability_here("forward_hopper"));
  if (reason.empty()) return;
  throw_input_error({.where = "forward_hopper",
                     .expected = "compute capability 9.0, scale > 0, head_dim and v_dim multiples "
                                 "of 8 up to 256, heads that group",
                     .actual = reason,
                     .hint = "The portable kernels take every GPU since 8.0, and every scale."});
}

/// The clusters of a kernel that can be on the device at the same time: clusters of one block are
/// as many as the multiprocessors.
template <class Tile>
int most_clusters() {
  if constexpr (Tile::kCluster == 1) {
    return attribute_here(cudaDevAttrMultiProcessorCount, "forward_hopper");
  }
  const auto kernel = reinterpret_cast<const void*>(forward_hopper_kernel<Tile>);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kHopperSharedBytes<Tile>),
             "cudaFuncSetAttribute", "forward_hopper");
  const ClusterLaunch launch({.name = "forward_hopper",
                              .blocks = Tile::kCluster,
                              .threads = Tile::kThreads,
                              .shared_bytes = kHopperSharedBytes<Tile>,
                              .stream = nullptr,
                              .cluster = Tile::kCluster});
  int clusters = 0;
  check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config),
             "cudaOccupancyMaxActiveClusters", "forward_hopper");
  return clusters;
}

/// Clusters of a grid: one for each tile, or fewer.
template <class Tile>
int clusters_of(const ForwardGrid& grid, int tiles) {
  if (!grid.stays) return tiles;
  return std::clamp(most_clusters<Tile>() - grid.left_free, 1, tiles);
}

template <class Tile>
void launch_hopper(const HopperParams<typename Tile::Element>& params, Tile, Stream stream,
                   const ForwardGrid& grid) {
  launch_kernel<forward_hopper_kernel<Tile>>(
      {.name = "forward_hopper",
       .blocks = std::int64_t{clusters_of<Tile>(grid, tile_count(params.order))} * Tile::kCluster,
       .threads = Tile::kThreads,
       .shared_bytes = kHopperSharedBytes<Tile>,
       .stream = stream,
       .cluster = Tile::kCluster},
      params);
}

}  // namespace ringlab::cuda
