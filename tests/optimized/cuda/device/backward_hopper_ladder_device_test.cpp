// Every version of the Hopper backward kernel on a device: the trials of the emulated GPU.
#include "reference/attention/exact.h"
#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/hopper/hopper_trial.h"

namespace ringlab::cuda {
namespace {

auto kernel_of(const HopperBackwardVersion& version) {
  return [version](const BackwardCall<BFloat16>& call, std::uint64_t) {
    device_backward_hopper_version(version, call);
  };
}

class HopperBackwardLadder : public DeviceTest<Needs::hopper>,
                             public testing::WithParamInterface<HopperBackwardVersion> {};

#include "tests/optimized/cuda/hopper/backward_hopper_ladder_trials-inl.h"

INSTANTIATE_TEST_SUITE_P(Versions, HopperBackwardLadder,
                         testing::ValuesIn(hopper_backward_versions().begin(),
                                           hopper_backward_versions().end()),
                         [](const auto& version) { return label(version.param); });

}  // namespace
}  // namespace ringlab::cuda
