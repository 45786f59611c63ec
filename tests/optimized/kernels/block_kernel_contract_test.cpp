// The contract that every block kernel keeps, on whatever it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "tests/optimized/kernels/block_kernel.h"

namespace ringlab {
namespace {

/// A kernel, and of its groups of cases one.
struct Tried {
  BlockKernel kernel;
  CaseGroup group;
};
void PrintTo(const Tried& tried, std::ostream* out) {
  *out << tried.kernel.name << "_" << tried.group.name;
}
const BlockKernel& kernel_of(const BlockKernel& kernel) { return kernel; }
const BlockKernel& kernel_of(const Tried& tried) { return tried.kernel; }

template <class Parameter>
class OnKernel : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    const auto& begin = kernel_of(this->GetParam()).begin;
    const std::string reason = begin ? begin() : "";
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    const auto& end = kernel_of(this->GetParam()).end;
    const std::string wrong = end ? end() : "";
    if (!wrong.empty()) ADD_FAILURE() << wrong;
  }
};

std::vector<Tried> every_group() {
  std::vector<Tried> all;
  for (const BlockKernel& kernel : every_block_kernel()) {
    for (const CaseGroup& group : kernel.groups) all.push_back({kernel, group});
  }
  return all;
}

class BlockKernelCases : public OnKernel<Tried> {};
INSTANTIATE_TEST_SUITE_P(Kernels, BlockKernelCases, testing::ValuesIn(every_group()),
                         testing::PrintToStringParamName());

/// With RINGLAB_TIME_KERNELS set, the seconds of each case are told, too.
TEST_P(BlockKernelCases, equal_the_exact_reference) {
  auto [kernel, group] = GetParam();
  const bool one_order = !kernel.forward && kernel.orders.size() > 1;  // hunts try all of them
  for (const KernelCase& c : group.cases) {
    if (one_order) kernel.orders = {c.seed % 2 == 1};
    ASSERT_EQ(check(kernel, c, c.seed), "");
    if (std::getenv("RINGLAB_TIME_KERNELS") == nullptr) continue;
    std::cout << kernel.name << ", " << c.text() << ": " << seconds(kernel, c) << " s\n";
  }
}

class BlockKernels : public OnKernel<BlockKernel> {};
INSTANTIATE_TEST_SUITE_P(Kernels, BlockKernels, testing::ValuesIn(every_block_kernel()),
                         testing::PrintToStringParamName());

TEST_P(BlockKernels, show_what_is_not_finite_in_the_rows_that_see_it_only) {
  using Where = Spoiler::Where;
  const double nan = std::nan("");
  for (const KernelCase& c : GetParam().spoilt) {
    const std::int64_t query = (c.seed * 7 + 5) % c.shape.q_tokens;
    const std::int64_t key = (c.seed * 29 + 17) % c.shape.kv_tokens;
    for (const Spoiler& spoiler :
         {Spoiler{Where::k, key, nan}, Spoiler{Where::k, key, HUGE_VAL},
          Spoiler{Where::v, key, nan}, Spoiler{Where::v, key, HUGE_VAL},
          Spoiler{Where::q, query, nan}, Spoiler{Where::dout, query, nan}}) {
      EXPECT_EQ(check_spoilt(GetParam(), c, spoiler, c.seed), "");
    }
  }
}

/// Scores of up to 2^45, whatever rounding leaves of them, and no masked key: the mean, as of scores
/// that are 0.
TEST_P(BlockKernels, weigh_equal_scores_of_any_size) {
  const BlockKernel& kernel = GetParam();
  if (!kernel.weighs_any_score) GTEST_SKIP() << "huge scores are not promised anything";
  KernelTrial trial = make_trial(
      {.shape = {.q_tokens = 384, .kv_tokens = 384, .head_dim = 16, .v_dim = 16}, .seed = 8},
      kernel.dtype);
  Tensor<double>& k = trial.tensors.k;
  for_each_index(k.extents(),
                 [&](auto b, auto h, auto t, auto c) { k(b, h, t, c) = k(b, h, 0, c); });
  KernelTrial flat = trial;
  std::ranges::fill(flat.tensors.q.values(), 0);
  trial.problem.scale = 0x1p40 / 3;
  const AttentionOutput got{kernel.forward(trial, 3).out, exact_output(flat).lse};
  EXPECT_EQ(judge(flat, got, kernel.profile(flat)), "");
}

TEST_P(BlockKernels, have_the_same_bits_whatever_the_order_and_the_grid) {
  const BlockKernel& kernel = GetParam();
  if (!kernel.forward) GTEST_SKIP() << "no forward pass";
  for (const KernelCase& c : kernel.repeated) {
    const KernelTrial trial = make_trial(c, kernel.dtype);
    const AttentionOutput first = kernel.forward(trial, 0);
    for (std::uint64_t seed = 1; seed < kernel.repetitions; ++seed) {
      const AttentionOutput again = kernel.forward(trial, 101 * seed);
      EXPECT_EQ(again.out.values(), first.out.values()) << c.text() << ", seed " << seed;
      EXPECT_EQ(again.lse.values(), first.lse.values()) << c.text() << ", seed " << seed;
    }
  }
}

TEST_P(BlockKernels, have_gradients_of_the_same_bits_where_they_are_deterministic) {
  const BlockKernel& kernel = GetParam();
  if (!kernel.backward || !std::ranges::count(kernel.orders, true)) {
    GTEST_SKIP() << "no deterministic gradients";
  }
  bool order_shows = false;
  for (const KernelCase& c : kernel.repeated) {
    KernelTrial trial = make_trial(c, kernel.dtype);
    const AttentionOutput output = exact_output(trial);
    // Tells orders apart that 16 bits do not.
    if (kernel.dtype != DType::f64) trial.problem.dtype = DType::f32;
    const auto gradients = [&](bool deterministic, std::uint64_t seed) {
      return kernel.backward(trial, output, {deterministic, seed});
    };
    const AttentionGradients first = gradients(true, 0);
    const auto any_order = gradients(false, 0);
    for (std::uint64_t seed = 1; seed < kernel.repetitions; ++seed) {
      const AttentionGradients again = gradients(true, 101 * seed);
      EXPECT_EQ(again.dq.values(), first.dq.values()) << c.text() << ", seed " << seed;
      EXPECT_EQ(again.dk.values(), first.dk.values()) << c.text() << ", seed " << seed;
      EXPECT_EQ(again.dv.values(), first.dv.values()) << c.text() << ", seed " << seed;
      order_shows |= kernel.orders_are_drawn &&
                     gradients(false, 101 * seed).dq.values() != any_order.dq.values();
    }
  }
  EXPECT_EQ(order_shows, kernel.orders_are_drawn) << "no order of additions was tried but one";
}

}  // namespace
}  // namespace ringlab
