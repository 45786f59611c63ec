#include <cuda_runtime.h>

#include "optimized/cuda/portable/backward_portable.cuh"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/portable_launch.cuh"

namespace ringlab::cuda {
namespace {

static_assert(BackwardTiles<64>::kQueries == backward_portable_tile_queries(64, 64) &&
              BackwardTiles<128>::kQueries == backward_portable_tile_queries(128, 128) &&
              BackwardTiles<256>::kQueries == backward_portable_tile_queries(256, 256));

template <class Element, int kChannels, TileGradients kWhere>
__global__ void __launch_bounds__(kBackwardThreads)
    keys_kernel(const __grid_constant__ BackwardCall<Element> call) {
  backward_portable_block<Element, kChannels, kWhere>(call);
}

template <class Element, int kChannels>
__global__ void __launch_bounds__(kBackwardThreads)
    queries_kernel(const __grid_constant__ BackwardCall<Element> call) {
  backward_queries_block<Element, kChannels>(call);
}

template <class Element, int kChannels>
LaunchPlan keys_plan(const BlockShape& shape, Stream stream) {
  const std::int64_t tiles = tiles_of(shape.keys, BackwardTiles<kChannels>::kKeys);
  return {.name = "backward_portable, dK and dV",
          .blocks = tiles * shape.batch * shape.kv_heads,
          .threads = kBackwardThreads,
          .shared_bytes = KeyBlockMemory<kChannels>::kSharedBytes,
          .stream = stream};
}

template <class Element, int kChannels>
void launch(const BackwardCall<Element>& call, Stream stream) {
  const LaunchPlan keys = keys_plan<Element, kChannels>(call.shape, stream);
  if (!call.deterministic) {
    launch_kernel<keys_kernel<Element, kChannels, TileGradients::here>>(keys, call);
    return;
  }
  launch_kernel<keys_kernel<Element, kChannels, TileGradients::elsewhere>>(keys, call);
  const std::int64_t tiles = tiles_of(call.shape.queries, BackwardTiles<kChannels>::kQueries);
  launch_kernel<queries_kernel<Element, kChannels>>(
      {.name = "backward_portable, dQ",
       .blocks = tiles * call.shape.batch * call.shape.q_heads,
       .threads = kBackwardThreads,
       .shared_bytes = QueryBlockMemory<kChannels>::kSharedBytes,
       .stream = stream},
      call);
}

}  // namespace

template <class Element>
void backward_portable(const BackwardCall<Element>& call, Stream stream) {
  check_portable(call.shape, "backward_portable");
  with_padded_channels(call.shape,
                       [&]<int kChannels> { launch<Element, kChannels>(call, stream); });
}

template void backward_portable(const BackwardCall<Half>&, Stream);
template void backward_portable(const BackwardCall<BFloat16>&, Stream);

}  // namespace ringlab::cuda
