#include "optimized/cuda/hopper/hopper_launch.cuh"
#include "optimized/cuda/kernels.h"

namespace ringlab::cuda {

template <class Element>
void forward_hopper(const ForwardCall<Element>& call, Stream stream, const ForwardGrid& grid) {
  check_hopper_call(call);
  if (call.shape.queries == 0) return;
  with_hopper_tile(call, [&](auto tile) {
    const auto params = hopper_params<decltype(tile)>(call, make_tensor_map);
    launch_hopper(params, tile, stream, grid);
  });
}

template void forward_hopper(const ForwardCall<Half>&, Stream, const ForwardGrid&);
template void forward_hopper(const ForwardCall<BFloat16>&, Stream, const ForwardGrid&);

}  // namespace ringlab::cuda
