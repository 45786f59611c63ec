// Rings on a device: all ranks share the first one.
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/streams/device_kernels.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/devices_trial.h"

namespace ringlab::cuda {
namespace {

/// Those that `ringlab run optimized --device cuda` would choose.
template <class Element>
ring::DeviceKernels<Element> kernels(const Shape& shape) {
  const Problem problem{.shape = shape, .dtype = dtype_of<Element>, .scale = 1, .mask = {}};
  return ring::device_kernels<Element>(ring::choose_kernels(problem, {}, 1).forward, shape);
}

constexpr int kEvery = 1;  // schedule, layout and number of ranks
constexpr std::uint64_t kDelays = 3;

template <class Element>
class Devices : public DeviceTest<Needs::any_kernel> {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Devices, Elements);

#include "tests/optimized/cuda/devices_trials-inl.h"

TYPED_TEST(Devices, run_the_engine_of_the_command_line_with_channels_in_any_number) {
  DevicesCase c{.ring = small_ring(3, LayoutKind::zigzag)};
  c.ring.shape.head_dim = 9;
  c.ring.shape.v_dim = 1;
  const DevicesTrial trial = make_trial(c, dtype_of<TypeParam>);
  EXPECT_EQ(
      judge_devices(trial, ring::Engine().run(trial.input(), trial.options, ring::OnDevices())),
      "");
}

TYPED_TEST(Devices, refuse_more_devices_than_there_are) {
  const DevicesCase c{.ring = small_ring(2, LayoutKind::contiguous)};
  const DevicesTrial trial = make_trial(c, dtype_of<TypeParam>);
  EXPECT_THROW(run_devices<TypeParam>(trial, kernels<TypeParam>(c.ring.shape), {.devices = 1000}),
               Error);
}

}  // namespace
}  // namespace ringlab::cuda
