// The launch of the backward kernels for Hopper, and the checks before it.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "optimized/cuda/hopper/backward_hopper_shapes.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable_launch.cuh"
#include "optimized/cuda/stream.h"
#include "reference/core/error.h"

namespace ringlab::cuda {

/// static: each file that launches the kernel has one of its own, registered once.
template <class Tile, HopperQueryGradients kWhere>
static __global__ void __launch_bounds__(Tile::kThreads, 1) backward_hopper_kernel(
    const __grid_constant__ HopperBackwardParams<typename Tile::Element> params) {
  backward_hopper_block<Tile, kWhere>(params);
}

/// Input error where the kernel does not take the shape on the current device.
inline void check_backward_hopper_shape(const BlockShape& shape) {
  const std::string reason = why_not_backward_hopper(shape, capability_here("backward_hopper"));
  if (reason.empty()) return;
  throw_input_error({.where = "backward_hopper",
                     .expected = "compute capability 9.0, head_dim and v_dim multiples of 8 up to "
                                 "128, heads that group",
                     .actual = reason,
                     .hint = "The portable kernels take every GPU since 8.0, and 256 channels."});
}

template <class Tile, HopperQueryGradients kWhere>
void launch_backward_hopper(const HopperBackwardParams<typename Tile::Element>& params,
                            Stream stream) {
  launch_kernel<backward_hopper_kernel<Tile, kWhere>>(
      {.name = "backward_hopper",
       .blocks = hopper_backward_blocks(params.call.shape, params.order),
       .threads = Tile::kThreads,
       .shared_bytes = HopperBackwardShared<Tile>::kBytes,
       .stream = stream},
      params);
}

}  // namespace ringlab::cuda
