// The versions of backward_hopper_ladder.h and the tiles that they are compiled with.
#pragma once

#include <string_view>
#include <vector>

#include "optimized/cuda/hopper/backward_hopper.cuh"
#include "optimized/cuda/hopper/backward_hopper_ladder.h"

namespace ringlab::cuda {

/// Calls visit(version, tile) for each of hopper_backward_versions(), in their order.
template <class Visitor>
constexpr void for_each_hopper_backward_version(Visitor&& visit) {
  const auto with_channels = [&]<int kChannels>() {
    const auto step = [&](auto tile, std::string_view name, std::string_view what, bool by_heads) {
      visit(
          HopperBackwardVersion{
              .name = name, .what = what, .channels = kChannels, .by_heads = by_heads},
          tile);
    };
    using Pairs = HopperBackwardTile<BFloat16, kChannels, HopperAdding::pairs, false>;
    using InStep = HopperBackwardTile<BFloat16, kChannels, HopperAdding::boxes, false>;
    step(Pairs{}, "pairs of dQ", "dQ is added to memory by pairs of numbers", false);
    step(InStep{}, "boxes of dQ", "by way of shared memory, 16 rows at a time", false);
    step(InStep{}, "by heads", "a block has one query head, heads come in sections", true);
    step(HopperBackwardTile<BFloat16, kChannels>{}, "one tile later",
         "dQ is multiplied with the next tile: consumers need not keep in step", true);
  };
  with_channels.template operator()<64>();
  with_channels.template operator()<128>();
}

/// Calls visit(tile) for the version of that name.
template <class Visitor>
void with_hopper_backward_version(const HopperBackwardVersion& version, Visitor&& visit) {
  for_each_hopper_backward_version([&](const HopperBackwardVersion& one, auto tile) {
    if (one.name == version.name && one.channels == version.channels) visit(tile);
  });
}

inline std::vector<HopperBackwardVersion> list_hopper_backward_versions() {
  std::vector<HopperBackwardVersion> all;
  for_each_hopper_backward_version(
      [&](const HopperBackwardVersion& version, auto) { all.push_back(version); });
  return all;
}

}  // namespace ringlab::cuda
