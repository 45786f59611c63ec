// The Hopper backward kernel on a device: the trials of the emulated GPU.
#include <array>
#include <cmath>
#include <string>

#include "reference/attention/exact.h"
#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/expect_same_bits.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

constexpr bool kOrdersAreDrawn = false;  // a device has an order of its own

template <class Element>
auto backward_here() {
  return &device_backward_hopper<Element>;
}

template <class Element>
class BackwardHopper : public DeviceTest<Needs::hopper> {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BackwardHopper, Elements);

#include "tests/optimized/cuda/hopper/backward_hopper_trials-inl.h"

}  // namespace
}  // namespace ringlab::cuda
