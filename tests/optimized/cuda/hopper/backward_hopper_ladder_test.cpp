// Every version of the Hopper backward kernel on the emulated GPU.
#include "optimized/cuda/hopper/backward_hopper_ladder.h"

#include <gtest/gtest.h>

#include "optimized/cuda/hopper/backward_hopper_ladder_tiles.h"
#include "optimized/cuda/hopper/backward_hopper_shapes.h"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/tensor_map.h"
#include "tests/optimized/cuda/cuda_kernels.h"

namespace ringlab::cuda {
namespace {

#include "tests/optimized/cuda/hopper/backward_hopper_kernels-inl.h"

}  // namespace

std::vector<BlockKernel> emulated_backward_versions() {
  std::vector<BlockKernel> all;
  for (const HopperBackwardVersion& version : list_hopper_backward_versions()) {
    all.push_back(
        version_kernel(version, [version](const BackwardCall<BFloat16>& call, std::uint64_t seed) {
          with_hopper_backward_version(version, [&](auto tile) {
            emulate_backward_hopper<decltype(tile), HopperQueryGradients::here>(call, seed);
          });
        }));
  }
  return all;
}

namespace {

TEST(HopperBackwardVersions, end_at_the_kernel_as_it_is) {
  for (const std::int32_t channels : {64, 128}) {
    BackwardCall<BFloat16> call;
    call.shape = {.queries = 1, .keys = 1, .head_dim = channels, .v_dim = channels};
    bool is_the_kernel = false;
    for_each_hopper_backward_version([&]<class Tile>(const HopperBackwardVersion& version, Tile) {
      if (version.channels != channels || version.kind != HopperVersionKind::step) return;
      with_hopper_backward_tile(
          call, [&]<class Kernel>(Kernel) { is_the_kernel = std::is_same_v<Tile, Kernel>; });
    });
    EXPECT_TRUE(is_the_kernel) << channels;
  }
}

}  // namespace
}  // namespace ringlab::cuda
