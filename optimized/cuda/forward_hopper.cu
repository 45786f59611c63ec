#include "optimized/cuda/hopper_launch.cuh"
#include "optimized/cuda/kernels.h"

namespace ringlab::cuda {

template <class Element>
void forward_hopper(const ForwardCall<Element>& call, Stream stream, int left_free) {
  check_hopper_call(call);
  if (call.shape.queries == 0) return;
  with_hopper_tile(call, [&](auto tile) {
    const auto params = hopper_params<decltype(tile)>(call, make_tensor_map);
    launch_hopper(params, tile, stream, persistent_blocks(left_free));
  });
}

template void forward_hopper(const ForwardCall<Half>&, Stream, int);
template void forward_hopper(const ForwardCall<BFloat16>&, Stream, int);

}  // namespace ringlab::cuda
