#include <cuda_runtime.h>

#include "optimized/cuda/portable/forward_portable.cuh"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/portable/portable_launch.cuh"

namespace ringlab::cuda {
namespace {

template <class Element, int kChannels>
__global__ void __launch_bounds__(kForwardThreads, kChannels > 128 ? 1 : 2)
    forward_kernel(const __grid_constant__ ForwardCall<Element> call) {
  forward_portable_block<Element, kChannels>(call);
}

template <class Element, int kChannels>
void launch(const ForwardCall<Element>& call, Stream stream) {
  const std::int64_t tiles = tiles_of(call.shape.queries, kForwardQueries);
  launch_kernel<forward_kernel<Element, kChannels>>(
      {.name = "forward_portable",
       .blocks = tiles * call.shape.batch * call.shape.q_heads,
       .threads = kForwardThreads,
       .shared_bytes = ForwardTiles<kChannels>::kSharedBytes,
       .stream = stream},
      call);
}

}  // namespace

template <class Element>
void forward_portable(const ForwardCall<Element>& call, Stream stream) {
  check_portable(call.shape, "forward_portable");
  with_padded_channels(call.shape,
                       [&]<int kChannels> { launch<Element, kChannels>(call, stream); });
}

template void forward_portable(const ForwardCall<Half>&, Stream);
template void forward_portable(const ForwardCall<BFloat16>&, Stream);

}  // namespace ringlab::cuda
