// Every version of the Hopper kernel on a device: the trials of the emulated GPU.
#include <string>
#include <vector>

#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/hopper/hopper_trial.h"

namespace ringlab::cuda {
namespace {

AttentionOutput run(const HopperVersion& version, const RingTrial& trial,
                    const EmulatedGrid& grid) {
  const auto kernel = [&](const ForwardCall<BFloat16>& call, const EmulatedGrid&) {
    device_forward_hopper_version(version, call);
  };
  return run_hopper<BFloat16>(trial, kernel, grid, version.tile_queries);
}

class HopperLadder : public DeviceTest<Needs::hopper>,
                     public testing::WithParamInterface<HopperVersion> {};

#include "tests/optimized/cuda/hopper/forward_hopper_ladder_trials-inl.h"

INSTANTIATE_TEST_SUITE_P(Versions, HopperLadder,
                         testing::ValuesIn(hopper_versions().begin(), hopper_versions().end()),
                         [](const auto& version) { return label(version.param); });

}  // namespace
}  // namespace ringlab::cuda
