#include <string>
#include <vector>

#include "optimized/cuda/hopper/forward_hopper_ladder_tiles.h"
#include "optimized/cuda/hopper/hopper_launch.cuh"

namespace ringlab::cuda {
namespace {

bool takes(const HopperVersion& version, const ForwardCall<BFloat16>& call) {
  const std::int32_t channels = std::max(call.shape.head_dim, call.shape.v_dim);
  return channels <= version.channels &&
         call.shape.q_heads / call.shape.kv_heads % version.heads_together == 0 &&
         (call.mask.hides_nothing || !version.needs_everything_seen);
}

}  // namespace

std::span<const HopperVersion> hopper_versions() {
  static const std::vector<HopperVersion> all = list_hopper_versions();
  return all;
}

void forward_hopper_version(const HopperVersion& version, const ForwardCall<BFloat16>& call,
                            Stream stream) {
  check_hopper_call(call);
  if (!takes(version, call)) {
    throw_input_error({.where = "forward_hopper, " + std::string(version.name),
                       .expected = "at most " + std::to_string(version.channels) + " channels" +
                                   (version.heads_together > 1 ? ", even groups of heads" : "") +
                                   (version.needs_everything_seen ? ", and no mask" : ""),
                       .actual = "head_dim = " + std::to_string(call.shape.head_dim) +
                                 ", v_dim = " + std::to_string(call.shape.v_dim) + ", " +
                                 std::to_string(call.shape.q_heads / call.shape.kv_heads) +
                                 " query heads in a group" +
                                 (call.mask.hides_nothing ? "" : ", a mask"),
                       .hint = "forward_hopper() takes it."});
  }
  if (call.shape.queries == 0) return;
  with_hopper_version(version, [&](auto tile) {
    auto params = hopper_params<decltype(tile)>(call, make_tensor_map);
    if (!version.sections) params.order.section_heads = std::max(params.order.heads, 1);
    launch_hopper(params, tile, stream, {.stays = version.persistent});
  });
}

}  // namespace ringlab::cuda
