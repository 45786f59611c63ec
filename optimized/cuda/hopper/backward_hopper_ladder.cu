#include <algorithm>
#include <string>
#include <vector>

#include "optimized/cuda/hopper/backward_hopper_ladder_tiles.h"
#include "optimized/cuda/hopper/backward_hopper_launch.cuh"

namespace ringlab::cuda {

std::span<const HopperBackwardVersion> hopper_backward_versions() {
  static const std::vector<HopperBackwardVersion> all = list_hopper_backward_versions();
  return all;
}

void backward_hopper_version(const HopperBackwardVersion& version,
                             const BackwardCall<BFloat16>& call, Stream stream) {
  check_backward_hopper_shape(call.shape);
  if (std::max(call.shape.head_dim, call.shape.v_dim) > version.channels) {
    throw_input_error({.where = "backward_hopper, " + std::string(version.name),
                       .expected = "at most " + std::to_string(version.channels) + " channels",
                       .actual = "head_dim = " + std::to_string(call.shape.head_dim) +
                                 ", v_dim = " + std::to_string(call.shape.v_dim),
                       .hint = "backward_hopper() takes it."});
  }
  if (call.shape.queries == 0 || call.shape.keys == 0) return;
  with_hopper_backward_version(version, [&](auto tile) {
    using Tile = decltype(tile);
    const auto order = version.by_heads ? order_by_heads(call.shape, Tile::kKeys)
                                        : order_by_groups(call.shape, Tile::kKeys);
    const auto params = hopper_backward_params<Tile>(call, order, make_tensor_map);
    launch_backward_hopper<Tile, HopperQueryGradients::here>(params, stream);
  });
}

}  // namespace ringlab::cuda
