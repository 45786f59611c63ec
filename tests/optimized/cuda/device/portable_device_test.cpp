// The portable kernels on a device: the trials of the emulated GPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/expect_same_bits.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

constexpr bool kOrdersAreDrawn = false;  // a device has an order of its own

template <class Element>
PortableKernels<Element> kernels_here() {
  return device_portable_kernels<Element>();
}

template <class Element>
class Portable : public DeviceTest<Needs::any_kernel> {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Portable, Elements);

#include "tests/optimized/cuda/portable/portable_trials-inl.h"

}  // namespace
}  // namespace ringlab::cuda
