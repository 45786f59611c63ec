// cuDNN's attention on a device: skipped where there is no GPU or no cuDNN.
#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "property_tests/endings.h"
#include "tests/optimized/cuda/cudnn/cudnn_trial.h"
#include "tests/optimized/cuda/device/device_test.h"

namespace ringlab::cudnn {
namespace {

class CudnnOnDevices : public cuda::DeviceTest<cuda::Needs::any_kernel> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    try {
      require_cudnn();
    } catch (const Error& error) {
      GTEST_SKIP() << "no cuDNN: " << error.what();
    }
  }
};

/// Without gradients where cuDNN has none.
AttentionInput what_there_is(const cuda::DevicesTrial& trial) {
  AttentionInput input = trial.input();
  const std::string reason = ring::why_not_on_cudnn(input.problem, trial.options, Pass::backward);
  if (!reason.empty()) input.dout.reset();
  return input;
}

/// What this cuDNN has no kernel for on this device: nobody promises one for odd pieces.
struct Refused {
  int cases = 0;
  std::string first;  // and why
};

/// Empty, also where cuDNN has no kernel; `refused` gets those.
std::string check(const cuda::DevicesCase& c, DType dtype, Refused& refused) {
  const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
  try {
    const std::string wrong =
        judge(trial, ring::Engine().run(what_there_is(trial), trial.options,
                                        ring::OnDevices(ring::AttentionOf::cudnn)));
    return wrong.empty() ? "" : c.text() + ": " + wrong;
  } catch (const Refusal& refusal) {
    if (refused.cases++ == 0) refused.first = c.text() + ": " + refusal.what();
    return "";
  }
}

TEST_F(CudnnOnDevices, equals_the_exact_reference_in_random_rings) {
  constexpr int kCases = 12;  // cuDNN makes plans for every shape: about eight for a case
  Refused refused;
  for (unsigned seed = 0; seed < kCases; ++seed) {
    const DType dtype = seed % 2 ? DType::f16 : DType::bf16;
    ASSERT_EQ(check(random_case(seed, 128), dtype, refused), "");
  }
  if (refused.cases == kCases) GTEST_SKIP() << "cuDNN has no kernel for any: " << refused.first;
  if (refused.cases > 0) {
    RecordProperty("rings_without_a_kernel", std::to_string(refused.cases) + " of " +
                                                 std::to_string(kCases) + ", " + refused.first);
  }
}

TEST_F(CudnnOnDevices, takes_what_models_look_like) {
  for (const LayoutKind layout :
       {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (const int ranks : {1, 3}) {
      const cuda::DevicesCase c{.ring = {.shape = {.q_heads = 8,
                                                   .kv_heads = 2,
                                                   .q_tokens = 600,
                                                   .kv_tokens = 600,
                                                   .head_dim = 128,
                                                   .v_dim = 128},
                                         .mask = "causal",
                                         .layout = layout,
                                         .ranks = ranks,
                                         .seed = 8},
                                .schedule = "ring"};
      Refused refused;
      ASSERT_EQ(check(c, DType::bf16, refused), "");
      if (refused.cases > 0) GTEST_SKIP() << "cuDNN has no kernel for it: " << refused.first;
    }
  }
}

}  // namespace
}  // namespace ringlab::cudnn
