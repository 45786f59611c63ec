// What is timed is attention: the same numbers as the reference's, and operations counted right.
#include <gtest/gtest.h>

#include <cmath>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"
#include "optimized/bench/cpu/roofline.h"
#include "optimized/cpu/kernel_profile.h"
#include "reference/attention/exact.h"

namespace ringlab::bench {
namespace {

template <class Element>
std::vector<double> widened(const std::vector<Element>& values) {
  std::vector<double> wide;
  for (const Element value : values) wide.push_back(static_cast<double>(value));
  return wide;
}
template <class Element>
Tensor<double> tensor(const std::vector<Element>& values, const Extents& extents) {
  Tensor<double> wide(extents);
  wide.values() = widened(values);
  return wide;
}

/// Both passes of a causal problem against the reference, inside its bounds.
template <class Element>
void expect_right(std::int64_t tokens, std::int64_t head_dim, int threads) {
  const AttentionSizes sizes{.heads = 2,
                             .queries = tokens,
                             .tokens = tokens,
                             .head_dim = head_dim,
                             .mask = "causal",
                             .threads = threads,
                             .tiles = {8, 8}};
  AttentionWork<Element> work(sizes);
  work.run_backward();
  work.run_backward();  // sums begin anew
  const auto all = work.tensors();
  const Shape shape{.batch = 1,
                    .q_heads = 2,
                    .kv_heads = 2,
                    .q_tokens = tokens,
                    .kv_tokens = tokens,
                    .head_dim = head_dim,
                    .v_dim = head_dim};
  const Problem problem{.shape = shape,
                        .dtype = dtype_of<Element>,
                        .scale = 1 / std::sqrt(static_cast<double>(head_dim)),
                        .mask = parse_mask("causal").bind(tokens, tokens)};
  const AttentionTensors inputs{tensor(all.q, shape.q()), tensor(all.k, shape.k()),
                                tensor(all.v, shape.v())};
  const AttentionInput input = inputs.input(problem);
  const NumericsProfile profile = cpu::kernel_profile(problem.dtype, (tokens + 7) / 8);
  const ExactForward exact = exact_forward(input);
  const AttentionOutput got{tensor(all.out, shape.out()), tensor(all.lse, {1, 2, tokens, 1})};
  const Report forward = compare_forward(got, exact, forward_tolerance(input, exact, profile));
  EXPECT_TRUE(forward.passed()) << forward.summary();
  const Tensor<double> dout = tensor(all.dout, shape.out());
  const ExactBackward gradients = exact_backward(input, dout.view());
  const BackwardTolerance tolerance = backward_tolerance(input, dout.view(), gradients, profile);
  const Report backward{
      {compare("dq", tensor(all.dq, shape.q()).view(), gradients.dq.view(), tolerance.dq.view()),
       compare("dk", tensor(all.dk, shape.k()).view(), gradients.dk.view(), tolerance.dk.view()),
       compare("dv", tensor(all.dv, shape.v()).view(), gradients.dv.view(), tolerance.dv.view())}};
  EXPECT_TRUE(backward.passed()) << backward.summary();
}

TEST(AttentionWork, computes_attention_and_its_gradients) {
  for (const int threads : {1, 2}) {
    expect_right<float>(37, 5, threads);
    expect_right<float>(1, 1, threads);
    expect_right<BFloat16>(37, 16, threads);
  }
}

TEST(AttentionWork, operations_are_counted_for_the_pairs_that_the_mask_allows) {
  const AttentionWork<float> full({.heads = 3, .queries = 5, .tokens = 7, .head_dim = 2});
  EXPECT_EQ(full.forward_flops(), 4 * 3 * 5 * 7 * 2);
  EXPECT_EQ(full.backward_flops(), 10 * 3 * 5 * 7 * 2);
  const AttentionWork<float> causal(
      {.heads = 1, .queries = 2, .tokens = 5, .head_dim = 8, .mask = "causal"});
  EXPECT_EQ(causal.forward_flops(), 4 * (4 + 5) * 8);
}

TEST(AttentionWork, keys_are_read_once_for_every_group_of_queries) {
  const AttentionWork<float> work(
      {.queries = 10, .tokens = 10, .head_dim = 4, .tiles = {4, 128}});  // 3 groups
  EXPECT_EQ(work.forward_bytes(), 40 * 4 + 2 * 3 * 40 * 4 + 2 * 40 * 4);
}

TEST(AttentionWork, runs_on_tiny_odd_sizes_and_several_threads) {
  for (const char* mask : {"full", "causal"}) {
    for (const int threads : {1, 3}) {
      AttentionWork<BFloat16> narrow(
          {.heads = 2, .queries = 7, .tokens = 7, .head_dim = 3, .mask = mask, .threads = threads});
      narrow.run_forward();
      narrow.run_backward();
      AttentionWork<float> one(
          {.queries = 1, .tokens = 1, .head_dim = 1, .mask = mask, .threads = threads});
      one.run_backward();
      one.run_backward_kernel();
    }
  }
}

TEST(PeakLoop, says_how_much_it_did_and_that_is_enough) {
  for (const PeakOperation operation : {PeakOperation::f32_fma, PeakOperation::f64_fma,
                                        PeakOperation::bf16_dot, PeakOperation::bf16_matrix}) {
    if (!PeakLoop::missing(operation).empty()) continue;
    const PeakLoop peak(operation);
    for (const double flops : {0.0, 1.0, 1e6}) {
      const double done = peak.run(flops);
      EXPECT_GE(done, flops);
      const bool matrices = operation == PeakOperation::bf16_matrix;
      EXPECT_LE(done, flops + (matrices ? 4 * 2 * 16 * 16 * 32 : 2 * 14 * 4 * 16));
    }
    EXPECT_GT(peak.flops_per_s(), 0);
  }
}

TEST(Bandwidth, of_buffers_however_small_is_above_zero) {
  for (const std::int64_t bytes : {0, 1, 511, 513, 1 << 16}) {
    const Bandwidth measured = measure_reading("here", bytes);
    EXPECT_GT(measured.bytes_per_s, 0) << bytes;
    EXPECT_GE(measured.buffer_bytes, 512);
  }
}

}  // namespace
}  // namespace ringlab::bench
