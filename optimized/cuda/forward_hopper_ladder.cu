#include <string>
#include <vector>

#include "optimized/cuda/forward_hopper_ladder_tiles.h"
#include "optimized/cuda/hopper_launch.cuh"

namespace ringlab::cuda {
namespace {

std::vector<HopperVersion> collect_versions() {
  std::vector<HopperVersion> all;
  for_each_hopper_version([&](const HopperVersion& version, auto) { all.push_back(version); });
  return all;
}

bool takes(const HopperVersion& version, const ForwardCall<BFloat16>& call) {
  const std::int32_t channels = std::max(call.shape.head_dim, call.shape.v_dim);
  return channels <= version.channels &&
         (call.mask.hides_nothing || !version.needs_everything_seen);
}

bool is_same(const HopperVersion& a, const HopperVersion& b) {
  return a.name == b.name && a.channels == b.channels;
}

}  // namespace

std::span<const HopperVersion> hopper_versions() {
  static const std::vector<HopperVersion> all = collect_versions();
  return all;
}

void forward_hopper_version(const HopperVersion& version, const ForwardCall<BFloat16>& call,
                            Stream stream) {
  check_hopper_call(call);
  if (!takes(version, call)) {
    throw_input_error({.where = "forward_hopper, " + std::string(version.name),
                       .expected = "at most " + std::to_string(version.channels) + " channels" +
                                   (version.needs_everything_seen ? ", and no mask" : ""),
                       .actual = "head_dim = " + std::to_string(call.shape.head_dim) +
                                 ", v_dim = " + std::to_string(call.shape.v_dim) +
                                 (call.mask.hides_nothing ? "" : ", a mask"),
                       .hint = "forward_hopper() takes it."});
  }
  if (call.shape.queries == 0) return;
  for_each_hopper_version([&](const HopperVersion& one, auto tile) {
    if (!is_same(one, version)) return;
    auto params = hopper_params<decltype(tile)>(call, make_tensor_map);
    if (!version.sections) params.order.section_heads = std::max(params.order.heads, 1);
    launch_hopper(params, tile, stream, {.stays = version.persistent});
  });
}

}  // namespace ringlab::cuda
