// A sample of right results passes, and what a wrong kernel would leave does not.
#include "optimized/bench/gpu/gpu_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "reference/attention/exact.h"
#include "reference/core/run.h"

namespace ringlab::bench {
namespace {

constexpr std::int64_t kTokens = 300;

template <class T>
Tensor<T> rounded(const Tensor<double>& wide) {
  Tensor<T> tensor(wide.extents());
  std::ranges::transform(wide.values(), tensor.values().begin(),
                         [](double value) { return static_cast<T>(value); });
  return tensor;
}

class Samples {
 public:
  Tensor<double> normal(std::int64_t heads) {
    Tensor<double> tensor({1, heads, kTokens, 16});
    for (double& value : tensor.values()) value = static_cast<double>(BFloat16(draw_(random_)));
    return tensor;
  }

 private:
  std::mt19937 random_{7};
  std::normal_distribution<double> draw_;
};

GpuSample right_sample() {
  const Shape shape{.q_heads = 2,
                    .kv_heads = 1,
                    .q_tokens = kTokens,
                    .kv_tokens = kTokens,
                    .head_dim = 16,
                    .v_dim = 16};
  const Problem problem{.shape = shape,
                        .dtype = DType::bf16,
                        .scale = 0.25,
                        .mask = parse_mask("causal").bind(kTokens, kTokens)};
  Samples samples;
  const AttentionTensors wide{samples.normal(2), samples.normal(1), samples.normal(1)};
  const Tensor<double> dout = samples.normal(2);
  const AttentionInput input = wide.input(problem);
  const ExactForward exact = exact_forward(input);
  const ExactBackward gradients = exact_backward(input, dout.view());
  return {.problem = problem,
          .q = rounded<BFloat16>(wide.q),
          .k = rounded<BFloat16>(wide.k),
          .v = rounded<BFloat16>(wide.v),
          .out = rounded<BFloat16>(exact.out),
          .dout = rounded<BFloat16>(dout),
          .dq = rounded<BFloat16>(gradients.dq),
          .dk = rounded<BFloat16>(gradients.dk),
          .dv = rounded<BFloat16>(gradients.dv),
          .lse = rounded<float>(exact.lse)};
}

TEST(GpuSample, right_results_pass_with_gradients_and_without) {
  GpuSample sample = right_sample();
  EXPECT_EQ(wrong_in(sample), "");
  sample.dout = sample.dq = sample.dk = sample.dv = {};
  EXPECT_EQ(wrong_in(sample), "");
}

void expect_wrong(const std::function<void(GpuSample&)>& spoil, const std::string& where) {
  GpuSample sample = right_sample();
  spoil(sample);
  EXPECT_NE(wrong_in(sample).find(where), std::string::npos) << wrong_in(sample);
}

TEST(GpuSample, wrong_results_are_told_where_they_are) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  expect_wrong([](GpuSample& s) { s.out(0, 1, kTokens - 1, 3) = BFloat16(9.0); }, "o");
  expect_wrong([](GpuSample& s) { s.lse(0, 0, 128, 0) = kNan; }, "lse");
  // A tile that was not written.
  expect_wrong(
      [](GpuSample& s) {
        for (std::int64_t row = 128; row < 256; ++row) s.out(0, 0, row, 0) = BFloat16(0.0);
      },
      "o");
  expect_wrong(
      [](GpuSample& s) {
        for (BFloat16& x : s.dq.values()) x = BFloat16(1.2 * static_cast<double>(x));
      },
      "dq");
  expect_wrong([](GpuSample& s) { std::ranges::fill(s.dv.values(), BFloat16(0.0)); }, "dv");
  expect_wrong([](GpuSample& s) { s.dk(0, 0, 5, 5) = BFloat16(static_cast<double>(kNan)); }, "dk");
}

}  // namespace
}  // namespace ringlab::bench
