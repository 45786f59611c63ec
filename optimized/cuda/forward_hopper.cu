#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "optimized/cuda/forward_hopper_shapes.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable_launch.cuh"
#include "reference/core/error.h"

namespace ringlab::cuda {
namespace {

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    forward_hopper_kernel(const __grid_constant__ HopperParams<typename Tile::Element> params) {
  forward_hopper_tiles<Tile>(params);
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute",
             "forward_hopper");
  return value;
}

int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice", "forward_hopper");
  return device;
}

template <class Element>
void check_call(const ForwardCall<Element>& call, int device) {
  const int capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                         attribute(cudaDevAttrComputeCapabilityMinor, device);
  const std::string reason = why_not_hopper(call.shape, call.scale, capability);
  if (reason.empty()) return;
  throw_input_error({.where = "forward_hopper",
                     .expected = "compute capability 9.0, scale > 0, head_dim and v_dim multiples "
                                 "of 8 up to 256, heads that group",
                     .actual = reason,
                     .hint = "The portable kernels take every GPU since 8.0, and every scale."});
}

/// A persistent grid: one thread block per multiprocessor, or as many as there are tiles.
template <class Tile>
void launch(const ForwardCall<typename Tile::Element>& call, int device, Stream stream) {
  const auto params = hopper_params<Tile>(call, make_tensor_map);
  launch_kernel(forward_hopper_kernel<Tile>,
                {.name = "forward_hopper",
                 .blocks = std::min(attribute(cudaDevAttrMultiProcessorCount, device),
                                    tile_count(params.order)),
                 .threads = Tile::kThreads,
                 .shared_bytes = kHopperSharedBytes<Tile>,
                 .stream = stream},
                params);
}

}  // namespace

template <class Element>
void forward_hopper(const ForwardCall<Element>& call, Stream stream) {
  const int device = current_device();
  check_call(call, device);
  if (call.shape.queries == 0) return;
  with_hopper_tile(call, [&](auto tile) { launch<decltype(tile)>(call, device, stream); });
}

template void forward_hopper(const ForwardCall<Half>&, Stream);
template void forward_hopper(const ForwardCall<BFloat16>&, Stream);

}  // namespace ringlab::cuda
