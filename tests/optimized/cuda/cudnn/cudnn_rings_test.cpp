// Whole rings with cuDNN's attention as their block kernel, where there is neither a device nor
// cuDNN: devices are plain memory, row kernels are emulated, and a plain loop does what graphs say.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "optimized/ring/vendor/cudnn_engine.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"
#include "reference/core/machine/machine_error.h"
#include "tests/expect_laws.h"
#include "tests/optimized/cuda/cudnn/cudnn_trial.h"
#include "tests/optimized/cuda/cudnn/memory_rings.h"
#include "tests/optimized/cuda/cudnn/memory_sdpa.h"
#include "tests/optimized/kernels/block_kernel.h"
#include "tests/optimized/ring/fake_devices.h"

namespace ringlab::cudnn {
namespace {

/// Graphs that were run since it was made.
struct Asked {
  int runs = 0;
  int backward_runs = 0;
};

SdpaRunner counted(SdpaRunner runner, Asked& asked) {
  runner.run = [run = runner.run, &asked](const SdpaGraph& graph, const SdpaPointers& pointers,
                                          cuda::Stream stream) {
    ++asked.runs;
    run(graph, pointers, stream);
  };
  runner.run_backward = [run = runner.run_backward, &asked](const SdpaBackwardGraph& graph,
                                                            const SdpaBackwardPointers& pointers,
                                                            cuda::Stream stream) {
    ++asked.backward_runs;
    EXPECT_TRUE(graph.deterministic);
    run(graph, pointers, stream);
  };
  return runner;
}

std::string why_not(const AttentionInput& input, const RunOptions& options) {
  return ring::why_not_on_cudnn(input.problem, options,
                                input.dout ? Pass::backward : Pass::forward);
}

std::string check(const cuda::DevicesCase& c, DType dtype, const SdpaRunner& runner) {
  const cuda::DevicesTrial trial = cuda::make_trial(c, dtype);
  const AttentionInput input = trial.input();
  if (why_not(input, trial.options) != "") return "refused: " + c.text();
  const std::string wrong = judge(trial, run_on_memory(input, trial.options, runner));
  return wrong.empty() ? "" : c.text() + ": " + wrong;
}

/// The trial on some schedule.
cuda::DevicesTrial on_schedule(const KernelTrial& trial) {
  constexpr ScheduleKind kSchedules[] = {ScheduleKind::ring, ScheduleKind::broadcast,
                                         ScheduleKind::allgather, ScheduleKind::bidirectional};
  return {trial,
          {.ranks = trial.q_layout.ranks(),
           .layout = trial.q_layout.kind(),
           .schedule = kSchedules[trial.seed % 4]}};
}

/// Whole rings as a block kernel; of cases that cuDNN has no gradients of, the forward pass alone.
BlockKernel rings(DType dtype, bool with_gradients) {
  BlockKernel kernel{.name = "cudnn_" + std::string(dtype_info(dtype).name), .dtype = dtype};
  kernel.forward = [](const KernelTrial& trial, std::uint64_t) {
    const cuda::DevicesTrial on = on_schedule(trial);
    return run_on_memory(trial.input(), on.options, memory_runner()).output;
  };
  if (with_gradients) {
    kernel.backward = [](const KernelTrial& trial, const AttentionOutput&, const GradientOptions&) {
      const cuda::DevicesTrial on = on_schedule(trial);
      return *run_on_memory(on.input(), on.options, memory_runner()).gradients;
    };
  }
  if (!with_gradients) kernel.name += "_forward";
  kernel.orders = {true};
  kernel.profile = [](const KernelTrial& trial) {
    return ring::cudnn_engine_profile(trial.problem, on_schedule(trial).options);
  };
  kernel.groups = contract_cases({.random = 20,
                                  .queries = {1, 33},
                                  .keys = {1, 50},
                                  .wide_queries = {},
                                  .wide_keys = {},
                                  .rising = {}});
  for (CaseGroup& group : kernel.groups) {
    std::erase_if(group.cases, [&](const KernelCase& c) {
      const cuda::DevicesTrial trial = on_schedule(make_trial(c, dtype));
      return why_not(trial.input(), trial.options).empty() != with_gradients;
    });
  }
  std::erase_if(kernel.groups, [](const CaseGroup& group) { return group.cases.empty(); });
  return kernel;
}

TEST(CudnnRings, have_gradients_of_most_cases) {
  EXPECT_LT(rings(DType::f16, false).groups.front().cases.size(), 4u);
}

TEST(CudnnRings, give_back_all_memory) {
  ASSERT_EQ(check(random_case(3, 32), DType::f16, memory_runner()), "");
  EXPECT_EQ(ring::fake_devices().live_bytes, 0);
}

/// Every graph wants a workspace of its own size, gradients a larger one.
SdpaRunner with_workspaces(SdpaRunner runner) {
  runner.workspace_bytes = [](const SdpaGraph& graph) { return 100 * graph.q.sizes[2]; };
  runner.backward_workspace_bytes = [](const SdpaBackwardGraph& graph) {
    return 1000 * graph.k.sizes[2] + graph.q.sizes[2];
  };
  return runner;
}

TEST(CudnnRings, hold_what_is_said_before_to_the_byte_workspaces_included) {
  ring::FakeDevices& devices = ring::fake_devices();
  const int devices_before = std::exchange(devices.devices, 1);
  const SdpaRunner runner = with_workspaces(memory_runner());
  int refused = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const cuda::DevicesTrial trial = cuda::make_trial(random_case(seed, 48), DType::bf16);
    AttentionInput input = trial.input();
    if (why_not(input, trial.options) != "") input.dout.reset();
    const auto run = [&] { return run_on_memory(input, trial.options, runner); };
    devices.peak_bytes = 0;
    run();
    devices.free_bytes = devices.peak_bytes;
    EXPECT_NO_THROW(run()) << seed;
    --devices.free_bytes;
    const std::int64_t allocations = devices.allocations;
    try {
      run();
      ADD_FAILURE() << seed;
    } catch (const MachineError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("which the whole run of"), std::string::npos) << text;
      ++refused;
    }
    EXPECT_EQ(devices.allocations, allocations) << seed;
    devices.free_bytes = std::int64_t{1} << 40;
  }
  EXPECT_EQ(refused, 40);
  devices.devices = devices_before;
}

/// 48 tokens: 1 to 4 ranks divide them, and twice as many.
cuda::DevicesCase causal_ring(int ranks, LayoutKind layout, const std::string& schedule) {
  return {.ring = {.shape = {.q_heads = 2,
                             .kv_heads = 1,
                             .q_tokens = 48,
                             .kv_tokens = 48,
                             .head_dim = 16,
                             .v_dim = 16},
                   .mask = "causal",
                   .layout = layout,
                   .ranks = ranks,
                   .seed = 2},
          .schedule = schedule};
}

TEST(CudnnScratch, that_grows_keeps_what_was_handed_out) {
  StreamScratch scratch;
  std::array<std::byte, 64> bytes{};
  std::byte* const small = scratch.of(0, {}, 64);
  EXPECT_EQ(scratch.of(0, {}, 64), small);
  EXPECT_NE(scratch.of(0, {}, 65), small);
  // Work that was issued before uses it; the fake devices know what was freed.
  EXPECT_NO_THROW(cuda::copy_in(0, small, bytes));
  EXPECT_NE(scratch.of(0, {}, 64), small);
}

TEST(CudnnRings, ask_once_for_each_block_of_a_causal_ring_that_is_seen) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const LayoutKind layout : {LayoutKind::contiguous, LayoutKind::zigzag}) {
      Asked asked;
      const auto c = causal_ring(ranks, layout, "ring");
      ASSERT_EQ(check(c, DType::bf16, counted(memory_runner(), asked)), "");
      const bool all = layout == LayoutKind::zigzag;
      EXPECT_EQ(asked.runs, all ? ranks * ranks : ranks * (ranks + 1) / 2) << c.text();
      EXPECT_EQ(asked.backward_runs, asked.runs) << c.text();
    }
  }
}

/// What a call of the whole problem writes is the result, bit for bit.
TEST(CudnnRings, of_one_rank_and_one_piece_are_the_call_itself) {
  const cuda::DevicesTrial trial =
      cuda::make_trial(causal_ring(1, LayoutKind::contiguous, "ring"), DType::bf16);
  SdpaRunner runner = memory_runner();
  runner.run = [](const SdpaGraph& graph, const SdpaPointers& pointers, cuda::Stream) {
    for (std::int64_t i = 0; i < 2 * 48 * 16; ++i) {
      static_cast<BFloat16*>(pointers.out)[i] = static_cast<BFloat16>(1.5);
    }
    for (std::int64_t i = 0; i < 2 * 48; ++i) pointers.lse[i] = 0.1f;
    EXPECT_EQ(graph.q.sizes[2], 48);
  };
  runner.run_backward = [](const SdpaBackwardGraph& graph, const SdpaBackwardPointers& pointers,
                           cuda::Stream) {
    for (const auto& [gradient, count] :
         {std::pair{pointers.dq, 2 * 48 * 16}, {pointers.dk, 48 * 16}, {pointers.dv, 48 * 16}}) {
      std::fill_n(static_cast<BFloat16*>(gradient), count, static_cast<BFloat16>(2.5));
    }
    EXPECT_EQ(pointers.lse[0], 0.1f);
    EXPECT_EQ(static_cast<float>(static_cast<const BFloat16*>(pointers.out)[0]), 1.5f);
    EXPECT_EQ(graph.k.sizes[2], 48);
  };
  const RunResult got = run_on_memory(trial.input(), trial.options, runner);
  for (const double x : got.output.out.values()) ASSERT_EQ(x, 1.5);
  for (const double x : got.output.lse.values()) ASSERT_EQ(x, 0.1f);
  for (const Tensor<double>* gradient :
       {&got.gradients->dq, &got.gradients->dk, &got.gradients->dv}) {
    for (const double x : gradient->values()) ASSERT_EQ(x, 2.5);
  }
}

/// Only tensors as they come and leave, lse, the mask, and the larger of two workspaces.
TEST(CudnnRings, of_one_rank_and_one_piece_hold_no_sums) {
  ring::FakeDevices& devices = ring::fake_devices();
  const cuda::DevicesTrial trial =
      cuda::make_trial(causal_ring(1, LayoutKind::contiguous, "ring"), DType::bf16);
  devices.peak_bytes = 0;
  const RunResult got =
      run_on_memory(trial.input(), trial.options, with_workspaces(memory_runner()));
  EXPECT_EQ(judge(trial, got), "");
  constexpr std::int64_t kTokens = 48, kHeadDim = 16, kElement = 2;
  const std::int64_t q = 2 * kTokens * kHeadDim * kElement,
                     kv = q;  // 2 query heads, k and v of one
  const std::int64_t lse = 2 * kTokens * 4;
  const std::int64_t mask = got.ranks[0].peak_bytes - aligned_bytes(1000 * kTokens + kTokens);
  EXPECT_EQ(devices.peak_bytes, 4 * q + 2 * kv + lse + got.ranks[0].peak_bytes);
  EXPECT_LT(mask, 100 * kTokens);
  EXPECT_GT(mask, 0);
}

/// One mistake each in what stands for cuDNN: what this file accepts must find them.
TEST(CudnnRings, with_a_mistake_in_the_attention_are_found) {
  const auto with = [](auto change) {
    SdpaRunner runner = memory_runner();
    runner.run = [run = runner.run, change](SdpaGraph graph, SdpaPointers pointers,
                                            cuda::Stream stream) {
      change(graph, pointers);
      run(graph, pointers, stream);
    };
    return runner;
  };
  const auto found = [](const SdpaRunner& runner) {
    for (const LayoutKind layout : {LayoutKind::contiguous, LayoutKind::striped}) {
      auto c = causal_ring(3, layout, "ring");
      c.ring.shape.kv_tokens = 60;  // diagonals from both corners
      c.ring.mask = "causal+window:20,0";
      if (!check(c, DType::bf16, runner).empty()) return true;
    }
    return false;
  };
  EXPECT_FALSE(found(with([](SdpaGraph&, SdpaPointers&) {})));
  EXPECT_TRUE(found(with([](SdpaGraph& g, SdpaPointers&) { g.diagonals.right_bound.reset(); })));
  EXPECT_TRUE(found(with([](SdpaGraph& g, SdpaPointers&) { g.diagonals.left_bound.reset(); })));
  EXPECT_TRUE(found(with([](SdpaGraph& g, SdpaPointers&) {
    if (g.diagonals.left_bound) ++*g.diagonals.left_bound;
  })));
  EXPECT_TRUE(
      found(with([](SdpaGraph& g, SdpaPointers&) { g.diagonals.corner = Corner::top_left; })));
  EXPECT_TRUE(found(with([](SdpaGraph& g, SdpaPointers&) { g.scale *= 1.4426950f; })));
  EXPECT_TRUE(found(with([](SdpaGraph& g, SdpaPointers&) { g.q.strides[1] = 0; })));
}

TEST(CudnnRings, with_a_mistake_in_the_gradients_are_found) {
  const auto found = [](auto change) {
    SdpaRunner runner = memory_runner();
    runner.run_backward = [run = runner.run_backward, change](SdpaBackwardGraph graph,
                                                              SdpaBackwardPointers pointers,
                                                              cuda::Stream stream) {
      change(graph, pointers);
      run(graph, pointers, stream);
    };
    for (const LayoutKind layout : {LayoutKind::contiguous, LayoutKind::striped}) {
      auto c = causal_ring(3, layout, "ring");
      c.ring.shape.kv_tokens = 60;
      c.ring.shape.batch = 2;
      c.ring.mask = "causal+window:20,0";
      if (!check(c, DType::f16, runner).empty()) return true;
    }
    return false;
  };
  using Graph = SdpaBackwardGraph;
  using Pointers = SdpaBackwardPointers;
  EXPECT_FALSE(found([](Graph&, Pointers&) {}));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.diagonals.right_bound.reset(); }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.diagonals.left_bound.reset(); }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.diagonals.corner = Corner::top_left; }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.scale *= 1.4426950f; }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.q.strides[1] = 0; }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.dout.strides[1] = g.dout.strides[2]; }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.out.strides[0] = 0; }));
  EXPECT_TRUE(found([](Graph& g, Pointers&) { g.lse.strides[1] = 0; }));
  EXPECT_TRUE(found([](Graph&, Pointers& p) { p.out = p.dout; }));
  EXPECT_TRUE(found([](Graph&, Pointers& p) { std::swap(p.dk, p.dv); }));
}

/// A mask of one query and one key in the middle of a chunk, at its end, and in a chunk of its own.
TEST(CudnnRings, have_gradients_of_single_pairs_but_for_a_chunk_of_one_key) {
  for (const LayoutKind layout : {LayoutKind::contiguous, LayoutKind::striped}) {
    cuda::DevicesCase c = causal_ring(2, layout, "ring");
    c.ring.mask = "documents:5,1,17,1,1,23";
    EXPECT_EQ(check(c, DType::bf16, memory_runner()), "");
    c.ring.mask = "window:0,0";
    EXPECT_EQ(check(c, DType::bf16, memory_runner()), "");
  }
  cuda::DevicesCase c = causal_ring(3, LayoutKind::contiguous, "ring");
  c.ring.shape.q_tokens = c.ring.shape.kv_tokens = 3;
  const cuda::DevicesTrial trial = cuda::make_trial(c, DType::bf16);
  EXPECT_EQ(why_not(trial.input(), trial.options),
            "gives no gradients where a chunk has one key and a single query sees it");
  AttentionInput forward = trial.input();
  forward.dout.reset();
  EXPECT_EQ(why_not(forward, trial.options), "");
}

/// Blocks whose lse is in base 2 instead of e merge with wrong weights.
TEST(CudnnRings, with_an_lse_of_another_base_are_found) {
  SdpaRunner runner = memory_runner();
  runner.run = [run = runner.run](const SdpaGraph& graph, const SdpaPointers& pointers,
                                  cuda::Stream stream) {
    run(graph, pointers, stream);
    const std::int64_t rows = graph.lse.sizes[0] * graph.lse.strides[0];
    for (std::int64_t i = 0; i < rows; ++i) pointers.lse[i] *= 1.4426950f;
  };
  EXPECT_NE(check(causal_ring(3, LayoutKind::zigzag, "ring"), DType::f16, runner), "");
}

/// Passes that what stands for cuDNN keeps; all that the subject claims.
TEST(CudnnRings, obey_every_law) {
  verify::Subject subject = verify::on_device(verify::cudnn_subject(), DeviceKind::cuda);
  subject.run = [](const AttentionInput& input, const RunOptions& options) {
    const std::string reason = why_not(input, options);
    if (!reason.empty()) throw verify::Unsupported(reason);
    return run_on_memory(input, options, memory_runner());
  };
  verify::expect_laws_kept(subject, {.seed = 4, .cases_per_law = 6, .shrink = false}, 16);
}

TEST(WhyNotOnCudnn, names_what_cudnn_does_not_do) {
  const cuda::DevicesTrial trial =
      cuda::make_trial(causal_ring(2, LayoutKind::zigzag, "ring"), DType::bf16);
  const auto reason = [&](auto change) {
    AttentionInput input = trial.input();
    RunOptions options = trial.options;
    change(input, options);
    return why_not(input, options);
  };
  EXPECT_EQ(reason([](AttentionInput&, RunOptions&) {}), "");
  EXPECT_EQ(reason([](AttentionInput& a, RunOptions&) { a.problem.dtype = DType::f32; }),
            "does not compute in f32");
  EXPECT_EQ(reason([](AttentionInput& a, RunOptions&) { a.problem.modifiers.softcap = 2; }),
            "knows no score modifiers");
  EXPECT_EQ(reason([](AttentionInput&, RunOptions& o) { o.wire = WireFormat::fp8; }),
            "takes no wire that rounds K and V");
  EXPECT_EQ(reason([](AttentionInput& a, RunOptions&) { a.problem.shape.head_dim = 320; }),
            "takes no head_dim = 320");
  EXPECT_EQ(reason([](AttentionInput& a, RunOptions&) {
              a.problem.scale = -1;
            }).find("takes no scale = -1"),
            0u);
}

/// Every query of the whole sequence ends in another stripe: a piece for each.
TEST(WhyNotOnCudnn, refuses_masks_of_many_pieces) {
  cuda::DevicesCase c = causal_ring(2, LayoutKind::striped, "ring");
  c.ring.shape.q_tokens = c.ring.shape.kv_tokens = 2000;
  const cuda::DevicesTrial trial = cuda::make_trial(c, DType::bf16);
  RunOptions options = trial.options;
  EXPECT_EQ(why_not(trial.input(), options), "");
  options.kv_layout = Layout(LayoutKind::contiguous, 2000, 2);
  EXPECT_NE(why_not(trial.input(), options).find("pieces"), std::string::npos);
}

}  // namespace
}  // namespace ringlab::cudnn

std::vector<ringlab::BlockKernel> ringlab::every_block_kernel() {
  using cudnn::rings;
  return {rings(DType::f16, true), rings(DType::f16, false), rings(DType::bf16, true),
          rings(DType::bf16, false)};
}
