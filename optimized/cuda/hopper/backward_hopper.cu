#include <cuda_runtime.h>

#include <string>

#include "optimized/cuda/hopper/backward_hopper_shapes.h"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/portable_launch.cuh"
#include "reference/core/error.h"

namespace ringlab::cuda {
namespace {

template <class Tile, HopperQueryGradients kWhere>
__global__ void __launch_bounds__(Tile::kThreads, 1) backward_hopper_kernel(
    const __grid_constant__ HopperBackwardParams<typename Tile::Element> params) {
  backward_hopper_block<Tile, kWhere>(params);
}

/// dQ in a fixed order is the portable kernels'.
template <class Element, int kChannels>
__global__ void __launch_bounds__(kBackwardThreads)
    queries_kernel(const __grid_constant__ BackwardCall<Element> call) {
  backward_queries_block<Element, kChannels>(call);
}

void check_shape(const BlockShape& shape) {
  const std::string reason = why_not_backward_hopper(shape, capability_here("backward_hopper"));
  if (reason.empty()) return;
  throw_input_error({.where = "backward_hopper",
                     .expected = "compute capability 9.0, head_dim and v_dim multiples of 8 up to "
                                 "128, heads that group",
                     .actual = reason,
                     .hint = "The portable kernels take every GPU since 8.0, and 256 channels."});
}

template <class Tile>
void launch(const BackwardCall<typename Tile::Element>& call, Stream stream) {
  const auto params = hopper_backward_params<Tile>(call, make_tensor_map);
  const LaunchPlan plan{.name = "backward_hopper",
                        .blocks = hopper_backward_blocks<Tile>(call.shape),
                        .threads = Tile::kThreads,
                        .shared_bytes = HopperBackwardShared<Tile>::kBytes,
                        .stream = stream};
  if (!call.deterministic) {
    launch_kernel<backward_hopper_kernel<Tile, HopperQueryGradients::here>>(plan, params);
    return;
  }
  launch_kernel<backward_hopper_kernel<Tile, HopperQueryGradients::elsewhere>>(plan, params);
  const std::int64_t tiles = tiles_of(call.shape.queries, Tile::kMaskQueries);
  launch_kernel<queries_kernel<typename Tile::Element, Tile::kChannels>>(
      {.name = "backward_hopper, dQ",
       .blocks = tiles * call.shape.batch * call.shape.q_heads,
       .threads = kBackwardThreads,
       .shared_bytes = QueryBlockMemory<Tile::kChannels>::kSharedBytes,
       .stream = stream},
      call);
}

}  // namespace

template <class Element>
void backward_hopper(const BackwardCall<Element>& call, Stream stream) {
  check_shape(call.shape);
  if (call.shape.queries == 0 || call.shape.keys == 0) return;
  with_hopper_backward_tile(call, [&](auto tile) { launch<decltype(tile)>(call, stream); });
}

template void backward_hopper(const BackwardCall<Half>&, Stream);
template void backward_hopper(const BackwardCall<BFloat16>&, Stream);

}  // namespace ringlab::cuda
