// Every stage that has a device kernel, on a CUDA device: the laws of the CPU, from the same source.
// Skips without a device.
#include <chrono>
#include <string>
#include <thread>

#include "reference/core/machine/machine_error.h"
#include "stages/common/device_list.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

class StageCudaTest : public StageTest {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (status.devices == 0) GTEST_SKIP() << "no CUDA device: " << status.text;
  }
  static RunOptions on_device(RunOptions options) {
    options.device = DeviceKind::cuda;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(All, StageCudaTest, every_device_stage(), stage_name);

TEST_P(StageCudaTest, equals_the_reference_on_random_problems) {
  RandomRuns runs(GetParam() + 1);
  for (int round = 0; round < 150; ++round) {
    const Shape shape = runs.shape();
    const auto dtype = static_cast<DType>(runs.below(4));
    const Problem problem = make_problem(shape, runs.mask(shape), dtype);
    const RunOptions options = on_device(runs.options());
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
}

TEST_P(StageCudaTest, equals_the_reference_under_bit_matrices) {
  RandomRuns runs(GetParam() + 200);
  for (int round = 0; round < 20; ++round) {
    const Shape shape = runs.shape();
    Problem problem = make_problem(shape, "full");
    problem.mask = Mask({runs.bits(shape)}).bind(shape.q_tokens, shape.kv_tokens);
    ASSERT_EQ(check(problem, on_device(runs.options()), runs.seed()), "");
  }
}

TEST_P(StageCudaTest, equals_the_reference_with_any_slots_in_shapes_of_tensor_cores) {
  RandomRuns runs(GetParam() + 400);
  for (int round = 0; round < 10; ++round) {
    Shape shape = runs.shape();
    shape.q_tokens *= 8, shape.kv_tokens *= 8;
    shape.head_dim = 8 * (1 + runs.below(8)), shape.v_dim = 8 * (1 + runs.below(8));
    const Problem problem =
        make_problem(shape, runs.mask(shape), round % 2 == 0 ? DType::f16 : DType::bf16);
    RunOptions options = on_device(runs.options());
    options.slots = static_cast<int>(1 + runs.below(5));
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
}

TEST_P(StageCudaTest, tiles_larger_than_shared_memory_work) {
  const Problem problem = make_problem({1, 2, 1, 70, 70, 128, 128}, "causal", DType::f64);
  RunOptions options;
  options.ranks = 2;
  options.tile_queries = 1024;
  options.tile_keys = 1024;
  EXPECT_EQ(check(problem, on_device(options), 1), "");
}

TEST_P(StageCudaTest, a_missed_deadline_is_told_and_the_device_is_free_when_its_work_has_ended) {
  // The tile program: tensor cores take no f32. Long enough for who asks whether it has ended to
  // come late, on a busy machine.
  const Problem longer = make_problem({1, 4, 2, 12000, 12000, 64, 64}, "full", DType::f32);
  const Problem problem = make_problem({1, 4, 2, 1500, 1500, 64, 64}, "full", DType::f32);
  RunOptions options;
  options.ranks = 2;
  options.timeout_s = 1e-9;
  try {
    stage().run(random_tensors(longer, 3).input(longer), on_device(options));
    FAIL() << "a deadline of a nanosecond was kept";
  } catch (const DeviceStuck& error) {
    EXPECT_NE(std::string(error.what()).find("stage " + stage().name), std::string::npos)
        << error.what();
  }
  options.timeout_s = 60;
  std::string wrong = "the device is never free again";
  for (int attempt = 0; attempt < 1000; ++attempt) {
    try {
      wrong = check(problem, on_device(options), 3);
      break;
    } catch (const DeviceStuck&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  EXPECT_EQ(wrong, "");
}

TEST_P(StageCudaTest, runs_of_thousands_of_tokens_are_right_and_the_same_every_time) {
  const Problem problem = make_problem({1, 4, 2, 1500, 1500, 64, 64}, "causal", DType::bf16);
  RunOptions options;
  options.ranks = 4;
  options.layout = LayoutKind::zigzag;
  const AttentionTensors tensors = random_tensors(problem, 2);
  const AttentionInput input = tensors.input(problem);
  EXPECT_EQ(check(input, on_device(options)), "");
  const AttentionOutput first = stage().run(input, on_device(options)).output;
  const AttentionOutput second = stage().run(input, on_device(options)).output;
  EXPECT_EQ(first.out.values(), second.out.values());
  EXPECT_EQ(first.lse.values(), second.lse.values());
}

}  // namespace
}  // namespace ringlab::stages::testing
