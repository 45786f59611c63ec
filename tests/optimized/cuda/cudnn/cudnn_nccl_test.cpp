// Rings over NCCL with cuDNN's attention: ranks are threads, NCCL and devices are memory, row kernels
// are emulated, and a plain loop does what graphs say.
#include <gtest/gtest.h>

#include "optimized/ring/messages/nccl_run.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "optimized/transport/run_network.h"
#include "tests/optimized/cuda/cudnn/cudnn_trial.h"
#include "tests/optimized/cuda/cudnn/memory_rings.h"
#include "tests/optimized/cuda/cudnn/memory_sdpa.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/optimized/transport/fake_nccl.h"

namespace ringlab::cudnn {
namespace {

class CudnnOverNccl : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(ring::fake_devices().live_bytes, 0);
    EXPECT_EQ(ring::fake_devices().live_handles, 0);
    ring::fake_devices() = {};
  }
};

/// What OverNccl does, rank by rank.
RunResult run_over_nccl(const AttentionInput& input, const RunOptions& options) {
  nccl::reset_fake_nccl();
  nccl::fake_nccl().meets_in_exchange = true;  // as kernels run when they are issued
  ring::fake_devices() = {.devices = options.ranks, .has_ended = [](cuda::Stream stream) {
                            return nccl::messages_left(stream) == 0;
                          }};
  return run_padded_on_memory(
      input,
      [&]<class Element>(const Problem& padded, const ring::Ends<Element>& ends, RunResult&) {
        run_threads(options.ranks, {}, [&](Communicator& network) {
          const ring::ProcessJob job{.network = network};
          const ring::RankDevice device =
              ring::choose_rank_device(ring::tell_all_of(job), network.rank(), "here");
          const ring::OneNcclRank<Element> place(kernels_on_memory<Element>(memory_runner()), job,
                                                 device);
          ring::Engine().run(padded, options, ends, place);
        });
      });
}

std::string check(const cuda::DevicesCase& c, DType dtype) {
  const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
  const std::string wrong = judge(trial, run_over_nccl(trial.input(), trial.options));
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

TEST_F(CudnnOverNccl, rings_equal_the_exact_reference) {
  int ran = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    const cuda::DevicesCase c = random_case(seed, 32);
    const DType dtype = seed % 2 ? DType::f16 : DType::bf16;
    const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
    if (!ring::why_not_on_cudnn(trial.ring.problem, trial.options, Pass::backward).empty())
      continue;
    ASSERT_EQ(check(c, dtype), "");
    ++ran;
  }
  EXPECT_GT(ran, 15);
}

/// Whatever carries chunks and sums, the numbers are the same.
TEST_F(CudnnOverNccl, rings_have_the_bits_of_copies_between_devices) {
  const cuda::DevicesTrial trial = cuda::make_trial({.ring = {.shape = {.q_heads = 4,
                                                                        .kv_heads = 2,
                                                                        .q_tokens = 48,
                                                                        .kv_tokens = 48,
                                                                        .head_dim = 16,
                                                                        .v_dim = 16},
                                                              .mask = "causal",
                                                              .layout = LayoutKind::zigzag,
                                                              .ranks = 3,
                                                              .seed = 6},
                                                     .schedule = "ring"},
                                                    DType::bf16);
  const RunResult over_nccl = run_over_nccl(trial.input(), trial.options);
  const RunResult by_copies = run_on_memory(trial.input(), trial.options, memory_runner());
  EXPECT_TRUE(cuda::same_numbers(over_nccl, by_copies));
}

}  // namespace
}  // namespace ringlab::cudnn
