// Every planted mistake of the Hopper backward kernel is found on the emulated GPU, by a
// KernelFault or by the comparison with the exact reference, and none is found in the kernel as it
// is.
#include "tests/optimized/cuda/hopper/hopper_backward_mistakes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "optimized/cuda/emulator/fault.h"
#include "reference/attention/exact.h"
#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

using BackwardKernel = void (*)(const BackwardCall<BFloat16>&, std::uint64_t);

/// Small problems that have everything: a group of heads, more tiles than stages, tails, blocks of
/// keys that tiles see in full, one after the other, in part, in their second half only, and by
/// one key only.
std::vector<RingCase> small_cases() {
  const auto sizes = [](std::int64_t heads, std::int64_t queries, std::int64_t keys) {
    return Shape{.q_heads = heads,
                 .kv_heads = 1,
                 .q_tokens = queries,
                 .kv_tokens = keys,
                 .head_dim = 16,
                 .v_dim = 24};
  };
  return {{.shape = sizes(3, 140, 140), .mask = "causal"},
          {.shape = sizes(1, 300, 300), .mask = "window:0,64", .seed = 1},
          {.shape = sizes(1, 150, 150), .mask = "window:5,1", .seed = 2},
          {.shape = sizes(2, 384, 128), .seed = 3}};
}

AttentionOutput forward_of(const RingTrial& trial) {
  const ExactForward exact = exact_forward(trial.input());
  return {exact.out, exact.lse};
}

/// dO of the first query, which sees the first key only, is NaN: it may show in no other dV.
std::string check_unseen_nan(BackwardKernel kernel) {
  const RingCase c{.shape = {.q_tokens = 40, .kv_tokens = 40, .head_dim = 16, .v_dim = 16},
                   .mask = "causal",
                   .seed = 6};
  RingTrial trial = make_trial(c, DType::bf16);
  const AttentionOutput output = forward_of(trial);
  trial.dout(0, 0, 0, 3) = std::numeric_limits<double>::quiet_NaN();
  const AttentionGradients got = run_backward<BFloat16>(trial, output, {nullptr, kernel}, {});
  for (std::int64_t key = 0; key < 40; ++key) {
    if (std::isnan(got.dv(0, 0, key, 3)) != (key == 0)) {
      return "key " + std::to_string(key) + " and the NaN of the query that sees the first only";
    }
  }
  return "";
}

/// Empty, or how the first case that shows it shows that the kernel is wrong.
std::string find_backward_mistake(BackwardKernel kernel) {
  constexpr std::uint64_t kSeeds = 6;
  for (const RingCase& c : small_cases()) {
    const RingTrial trial = make_trial(c, DType::bf16);
    const AttentionOutput output = forward_of(trial);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      try {
        const std::string wrong =
            judge(trial, run_backward<BFloat16>(trial, output, {nullptr, kernel}, {.seed = seed}));
        if (!wrong.empty()) return c.text() + ": " + wrong;
      } catch (const emulator::KernelFault& fault) {
        return c.text() + ": " + fault.what();
      }
    }
  }
  return check_unseen_nan(kernel);
}

class HopperBackwardMistakes : public testing::TestWithParam<HopperBackwardMistake> {};

TEST_P(HopperBackwardMistakes, is_found) {
  const HopperBackwardMistake& mistake = GetParam();
  const std::string found = find_backward_mistake(mistake.kernel);
  EXPECT_NE(found, "") << mistake.id << " survives: " << mistake.breaks;
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(All, HopperBackwardMistakes, testing::ValuesIn(hopper_backward_mistakes()),
                         [](const auto& mistake) { return mistake.param.id; });

TEST(HopperBackwardMistakes, none_is_found_where_there_is_none) {
  EXPECT_EQ(find_backward_mistake(&emulated_backward_hopper<BFloat16>), "");
}

}  // namespace
}  // namespace ringlab::cuda
