// Whole rings with the kernels of optimized/cuda, unchanged, where there is no device: devices are
// plain memory, kernels run on the emulated GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/whole_tensors.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"
#include "tests/expect_laws.h"
#include "tests/optimized/cuda/devices_trial.h"
#include "tests/optimized/cuda/emulated_devices.h"

namespace ringlab::cuda {
namespace {

template <class Element>
ring::DeviceKernels<Element> kernels(const Shape& shape) {
  return emulated_device_kernels<Element>(
      std::is_same_v<Element, Half> ? EmulatedForward::portable : EmulatedForward::hopper, shape);
}

// An emulated GPU takes its time.
constexpr int kEvery = 11;  // schedule, layout and number of ranks
constexpr std::uint64_t kDelays = 1;

template <class Element>
class Devices : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Devices, Elements);

#include "tests/optimized/cuda/devices_trials-inl.h"

/// The subject `optimized` with --device cuda, but for where its kernels run.
verify::Subject emulated_subject() {
  verify::Subject subject = verify::on_device(verify::engine_subject(), DeviceKind::cuda);
  subject.run = [](const AttentionInput& input, const RunOptions& options) {
    RunResult result = ring::empty_result(input);
    const auto run = [&]<class Element>(Element) {
      const Problem padded = ring::with_padded_channels(input.problem);
      const ring::OnStreams<Element> place(kernels<Element>(padded.shape),
                                           {.gradients = ring::Repeatable::same_bits});
      const ring::Ends<Element> ends =
          ring::padded_ends(input.problem.shape, ring::whole_ends<Element>(input, result));
      ring::take_summary(ring::Engine().run(padded, options, ends, place), result);
    };
    input.problem.dtype == DType::f16 ? run(Half{}) : run(BFloat16{});
    return result;
  };
  return subject;
}

/// All but four, whose many runs are half of the time here. All with RINGLAB_ALL_MUTANTS=1, and on
/// devices (scripts/gpu_check); the emulated stage obeys those of the forward pass.
std::vector<std::string> affordable_laws() {
  const std::vector<std::string> slow = {"P55", "every_row", "P21", "P19"};
  std::vector<std::string> ids;
  for (const verify::Law& law : verify::all_laws()) {
    const bool is_slow = std::ranges::find(slow, law.id) != slow.end();
    if (!is_slow || std::getenv("RINGLAB_ALL_MUTANTS") != nullptr) ids.push_back(law.id);
  }
  return ids;
}

TEST(EmulatedEngine, obeys_the_laws) {
  verify::expect_laws_kept(
      emulated_subject(),
      {.seed = 3, .cases_per_law = 1, .laws = affordable_laws(), .shrink = false}, 21);
}

TEST(DeviceRuns, what_devices_cannot_do_is_a_usage_error) {
  KernelCase small{.shape = {.q_tokens = 4, .kv_tokens = 4, .head_dim = 3, .v_dim = 256}};
  const Problem good = make_trial(small, DType::bf16).problem;
  EXPECT_NO_THROW(ring::check_device_run(good, {}));
  const auto refused = [&](auto change) {
    Problem problem = good;
    RunOptions options;
    change(problem, options);
    try {
      ring::check_device_run(problem, options);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage;
    }
    return false;
  };
  EXPECT_TRUE(refused([](Problem& p, RunOptions&) { p.dtype = DType::f32; }));
  EXPECT_TRUE(refused([](Problem& p, RunOptions&) { p.shape.v_dim = 257; }));
  EXPECT_TRUE(refused([](Problem& p, RunOptions&) { p.modifiers.softcap = 3; }));
  EXPECT_TRUE(refused([](Problem& p, RunOptions&) { p.modifiers.dropout = 0.5; }));
  EXPECT_TRUE(refused([](Problem&, RunOptions& o) { o.wire = WireFormat::fp8; }));
  EXPECT_FALSE(refused([](Problem&, RunOptions& o) { o.wire = WireFormat::bf16; }));
}

}  // namespace
}  // namespace ringlab::cuda
