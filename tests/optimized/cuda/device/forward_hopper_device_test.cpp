// The Hopper kernel on a device: the trials of the emulated GPU.
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "tests/optimized/cuda/device/device_calls.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/hopper/hopper_trial.h"

namespace ringlab::cuda {
namespace {

template <class Element>
AttentionOutput run(const RingTrial& trial, const EmulatedGrid& grid) {
  return run_hopper<Element>(trial, &device_forward_hopper<Element>, grid);
}

template <class Element>
class ForwardHopper : public DeviceTest<Needs::hopper> {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ForwardHopper, Elements);

#include "tests/optimized/cuda/hopper/forward_hopper_trials-inl.h"

/// More tiles than any device has multiprocessors; the reference takes most of the time.
TYPED_TEST(ForwardHopper, goes_through_more_tiles_than_there_are_multiprocessors) {
  for (const char* mask : {"full", "causal"}) {
    const RingCase c{.shape = {.batch = 2,
                               .q_heads = 36,
                               .kv_heads = 12,
                               .q_tokens = 220,
                               .kv_tokens = 220,
                               .head_dim = 64,
                               .v_dim = 64},
                     .mask = mask,
                     .layout = LayoutKind::zigzag,
                     .ranks = 1,
                     .seed = 31};
    ASSERT_EQ(check<TypeParam>(c), "");
  }
}

}  // namespace
}  // namespace ringlab::cuda
