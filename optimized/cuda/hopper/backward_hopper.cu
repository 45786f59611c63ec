#include <cuda_runtime.h>

#include "optimized/cuda/hopper/backward_hopper_launch.cuh"
#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/portable_launch.cuh"

namespace ringlab::cuda {
namespace {

/// The portable kernels make dQ in a fixed order.
template <class Element, int kChannels>
__global__ void __launch_bounds__(kBackwardThreads)
    queries_kernel(const __grid_constant__ BackwardCall<Element> call) {
  backward_queries_block<Element, kChannels>(call);
}

template <class Tile>
void launch(const BackwardCall<typename Tile::Element>& call, Stream stream) {
  const BlockShape& shape = call.shape;
  const auto order =
      call.deterministic ? order_by_groups(shape, Tile::kKeys) : order_by_heads(shape, Tile::kKeys);
  const auto params = hopper_backward_params<Tile>(call, order, make_tensor_map);
  if (!call.deterministic) {
    launch_backward_hopper<Tile, HopperQueryGradients::here>(params, stream);
    return;
  }
  launch_backward_hopper<Tile, HopperQueryGradients::elsewhere>(params, stream);
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
  check_backward_hopper_shape(call.shape);
  if (call.shape.queries == 0 || call.shape.keys == 0) return;
  with_hopper_backward_tile(call, [&](auto tile) { launch<decltype(tile)>(call, stream); });
}

template void backward_hopper(const BackwardCall<Half>&, Stream);
template void backward_hopper(const BackwardCall<BFloat16>&, Stream);

}  // namespace ringlab::cuda
