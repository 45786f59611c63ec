// Rings on streams that are held up, with planted mistakes and without, on a device.
#include <cstdlib>

#include "optimized/ring/device_engine.h"
#include "optimized/ring/streams/device_kernels.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/property_tests/programs/delayed_mistakes.h"

namespace ringlab::ring {
namespace {

/// Of a run that takes milliseconds; one that hangs ends with DeviceStuck.
constexpr double kDeadline_s = 20;

Bits run_edited(const Trial& trial, const StreamEdit& edit) {
  const Problem& problem = trial.problem;
  const auto kernels = device_kernels<BFloat16>(
      choose_kernels(problem, {}, trial.options.ranks).forward, problem.shape);
  return bits_of_run<BFloat16>(trial, [&](const Ends<BFloat16>& ends) {
    Engine().run(problem, trial.options, ends,
                 OnStreams<BFloat16>(kernels, {.gradients = Repeatable::same_bits,
                                               .edit = edit,
                                               .unwritten = UnwrittenMemory::nan,
                                               .timeout_s = kDeadline_s}));
  });
}

class DelayedStreams : public cuda::DeviceTest<cuda::Needs::any_kernel> {
 protected:
  void SetUp() override {
    ASSERT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
    DeviceTest::SetUp();
  }
};
class DelayedMistakes : public DelayedStreams, public testing::WithParamInterface<StreamMistake> {};

#include "tests/optimized/ring/delayed_mistakes_trials-inl.h"

}  // namespace
}  // namespace ringlab::ring
