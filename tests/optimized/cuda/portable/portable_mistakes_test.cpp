// Every planted mistake of the portable kernels is found on the emulated GPU, and none is found in
// the kernels as they are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimized/cuda/emulator/fault.h"
#include "tests/optimized/cuda/planted_mistakes.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {
namespace {

/// Small problems that have everything: groups of heads, several chunks, tails, rows that see
/// nothing at first, maxima that come late.
std::vector<RingCase> cases(int channels) {
  const std::int64_t widest = channels > 128 ? 136 : 24;
  const Shape grouped{.batch = 2,
                      .q_heads = 4,
                      .kv_heads = 2,
                      .q_tokens = 70,
                      .kv_tokens = 70,
                      .head_dim = widest,
                      .v_dim = 16};
  const Shape one_head{.q_tokens = 150, .kv_tokens = 193, .head_dim = widest, .v_dim = 40};
  return {
      {.shape = grouped, .mask = "causal", .layout = LayoutKind::striped, .ranks = 1},
      {.shape = one_head, .inputs = InputKind::late_maxima, .seed = 1},
      {.shape = one_head, .mask = "causal", .seed = 2},
      {.shape = one_head, .mask = "causal", .layout = LayoutKind::zigzag, .ranks = 2, .seed = 3},
      {.shape = one_head, .mask = "window:0,0", .seed = 4},
      {.shape = one_head, .mask = "documents:65,128", .seed = 5}};
}

constexpr std::uint64_t kSeeds = 3;

PortableKernels<BFloat16> correct() { return portable_kernels<BFloat16>(); }

std::string check_forward(const RingTrial& trial, const PortableKernels<BFloat16>& kernels,
                          std::uint64_t seed) {
  return judge(trial, run_forward(trial, kernels, seed));
}

std::string check_backward(const RingTrial& trial, const PortableKernels<BFloat16>& kernels,
                           std::uint64_t seed) {
  const AttentionOutput output = run_forward(trial, correct(), 0);
  for (const bool deterministic : {false, true}) {
    const GradientOptions options{.deterministic = deterministic, .seed = seed};
    const std::string wrong = judge(trial, run_backward(trial, output, kernels, options));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// Empty, or how the first case that shows it shows that the kernels are wrong.
std::string find_mistake(const PortableKernels<BFloat16>& kernels, int channels,
                         std::uint64_t seeds = kSeeds) {
  for (const RingCase& c : cases(channels)) {
    const RingTrial trial = make_trial(c, DType::bf16);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      try {
        std::string wrong;
        if (kernels.forward) wrong = check_forward(trial, kernels, seed);
        if (wrong.empty() && kernels.backward) wrong = check_backward(trial, kernels, seed);
        if (!wrong.empty()) return c.text() + ": " + wrong;
      } catch (const emulator::KernelFault& fault) {
        return c.text() + ": " + fault.what();
      }
    }
  }
  return "";
}

class PortableMistakes : public testing::TestWithParam<PlantedMistake> {};

TEST_P(PortableMistakes, is_found) {
  const PlantedMistake& mistake = GetParam();
  const std::string found = find_mistake(mistake.kernels, mistake.channels);
  EXPECT_NE(found, "") << mistake.id << " survives: " << mistake.breaks;
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(All, PortableMistakes, testing::ValuesIn(planted_mistakes()),
                         [](const auto& mistake) { return mistake.param.id; });

TEST(PortableMistakes, none_is_found_where_there_is_none) {
  constexpr std::uint64_t kOnce = 1;  // all orders of threads are cuda_portable_test's
  EXPECT_EQ(find_mistake(correct(), 64, kOnce), "");
  EXPECT_EQ(find_mistake(correct(), 256, kOnce), "");
}

}  // namespace
}  // namespace ringlab::cuda
