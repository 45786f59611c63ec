// overlapped_causal_ring as it runs on GPUs, with the kernels of optimized/cuda, unchanged: devices are plain
// memory whose streams run in random orders, kernels run on the emulated GPU.
#include <gtest/gtest.h>

#include <span>

#include "property_tests/verify.h"
#include "stages/12_overlapped_causal_ring/on_streams.h"
#include "stages/common/run_ranks.h"
#include "tests/expect_laws.h"
#include "tests/optimized/cuda/emulated_devices.h"
#include "tests/stages/work_on_memory.h"

namespace ringlab::stages {
namespace {

int fast_runs = 0;

RunResult run_emulated(const AttentionInput& input, RunOptions options) {
  const bool fast = overlapped_causal_ring::takes_fast_kernel(input.problem, options);
  fast_runs += fast ? 1 : 0;
  options.device = DeviceKind::cpu;  // there is none that run_together() could ask for
  const testing::RandomOrder order(options.delay_seed);
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        const DeviceRing<Element> ring{ranks, moved, testing::kernel_on_memory<Element>(),
                                       testing::rows_on_memory<Element>()};
        overlapped_causal_ring::run_on_streams(ring, [&]<class Fast>(Fast) {
          using ringlab::cuda::EmulatedForward;
          constexpr bool is_half = std::is_same_v<Fast, Half>;
          constexpr auto forward = is_half ? EmulatedForward::portable : EmulatedForward::hopper;
          return ringlab::cuda::emulated_device_kernels<Fast>(forward, input.problem.shape);
        });
      });
}

TEST(EmulatedStage, obeys_every_law) {
  verify::Subject subject =
      verify::on_device(verify::find_subject("overlapped_causal_ring"), DeviceKind::cuda);
  subject.run = run_emulated;
  // What the kernels take; laws that want other channels meet the tile program.
  subject.can.dtypes = {DType::f16, DType::bf16};
  subject.can.drop({verify::Ability::bit_masks});
  subject.can.head_dim_multiple = 8;
  subject.can.max_head_dim = 64;
  verify::expect_laws_kept(subject, {.seed = 3, .cases_per_law = 1, .laws = {}, .shrink = false},
                           21);
  EXPECT_GT(fast_runs, 50);
}

}  // namespace
}  // namespace ringlab::stages
