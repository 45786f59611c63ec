// Every planted mistake of the Hopper kernel is found on the emulated GPU, by a KernelFault or by
// the comparison with the exact reference, and none is found in the kernel as it is.
#include "tests/optimized/cuda/hopper/hopper_mistakes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "optimized/cuda/emulator/fault.h"
#include "tests/optimized/cuda/hopper/hopper_trial.h"

namespace ringlab::cuda {
namespace {

/// Small problems that have everything: groups of heads, several tiles for a thread block, several
/// chunks, more blocks of keys than stages, tails, rows that see nothing, maxima that come late.
std::vector<RingCase> cases() {
  const Shape grouped{.batch = 2,
                      .q_heads = 4,
                      .kv_heads = 2,
                      .q_tokens = 70,
                      .kv_tokens = 70,
                      .head_dim = 24,
                      .v_dim = 16};
  const Shape one_head{.q_tokens = 250, .kv_tokens = 700, .head_dim = 24, .v_dim = 40};
  // Nothing is hidden, so no row is done again: what was read too early, as NaN, stays. Two tiles.
  const Shape all_full{.q_tokens = 200, .kv_tokens = 256, .head_dim = 24, .v_dim = 40};
  const Shape two_heads{
      .q_heads = 2, .q_tokens = 200, .kv_tokens = 520, .head_dim = 24, .v_dim = 16};
  return {{.shape = all_full},
          {.shape = two_heads, .seed = 8},
          {.shape = grouped, .mask = "causal"},
          {.shape = one_head, .inputs = InputKind::late_maxima, .seed = 1},
          {.shape = one_head, .mask = "causal", .seed = 2},
          {.shape = one_head,
           .mask = "causal",
           .ranks = 3,
           .inputs = InputKind::late_maxima,
           .seed = 3},
          {.shape = one_head, .mask = "window:300,200", .seed = 4},
          {.shape = one_head, .mask = "documents:165,535", .seed = 5}};
}

/// V of the last key, which only the last row sees, is NaN.
std::string check_hidden_nan(const EmulatedHopper<BFloat16>& kernel) {
  const RingCase c{.shape = {.q_tokens = 150, .kv_tokens = 150, .head_dim = 16, .v_dim = 16},
                   .mask = "causal",
                   .seed = 6};
  RingTrial trial = make_trial(c, DType::bf16);
  trial.tensors.v(0, 0, 149, 3) = std::numeric_limits<double>::quiet_NaN();
  const AttentionOutput got = run_hopper(trial, kernel, {});
  for (std::int64_t row = 0; row < 150; ++row) {
    if (std::isnan(got.out(0, 0, row, 3)) != (row == 149)) {
      return "row " + std::to_string(row) + " and the NaN that only the last row sees";
    }
  }
  return "";
}

/// Orders that are tried: of a kernel without a mistake all of them are.
constexpr std::uint64_t kSeeds = 18, kSeedsOfTheKernel = 4;

/// Empty, or how the case shows that the kernel is wrong.
std::string find_mistake_in(const RingCase& c, const EmulatedHopper<BFloat16>& kernel,
                            std::uint64_t seed) {
  // Late maxima would be met first.
  const RingTrial trial = backwards(make_trial(c, DType::bf16));
  const EmulatedGrid grid{.blocks = 1 + static_cast<int>(seed % 2), .seed = seed};
  try {
    const std::string wrong = judge_hopper(trial, run_hopper(trial, kernel, grid));
    return wrong.empty() ? "" : c.text() + ": " + wrong;
  } catch (const emulator::KernelFault& fault) {
    return c.text() + ": " + fault.what();
  }
}

/// Empty, or how the first case that shows it shows that the kernel is wrong. All cases in one order of
/// threads come before the next order.
std::string find_mistake(const EmulatedHopper<BFloat16>& kernel, std::uint64_t seeds,
                         std::int64_t heads_together = 1) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (const RingCase& c : cases()) {
      if (c.shape.q_heads / c.shape.kv_heads % heads_together != 0) continue;
      const std::string found = find_mistake_in(c, kernel, seed);
      if (!found.empty()) return found;
    }
    if (seed > 0 || heads_together > 1) continue;
    const std::string found = check_hidden_nan(kernel);
    if (!found.empty()) return found;
  }
  return "";
}

class HopperMistakes : public testing::TestWithParam<HopperMistake> {};

TEST_P(HopperMistakes, is_found) {
  const HopperMistake& mistake = GetParam();
  const std::string found = find_mistake(mistake.kernel, kSeeds, mistake.heads_together);
  EXPECT_NE(found, "") << mistake.id << " survives: " << mistake.breaks;
  RecordProperty("found", found);
}

INSTANTIATE_TEST_SUITE_P(All, HopperMistakes, testing::ValuesIn(hopper_mistakes()),
                         [](const auto& mistake) { return mistake.param.id; });

TEST(HopperMistakes, none_is_found_where_there_is_none) {
  EXPECT_EQ(find_mistake(&emulated_forward_hopper<BFloat16>, kSeedsOfTheKernel), "");
  EXPECT_EQ(find_mistake(&emulated_tactical_hopper, kSeedsOfTheKernel), "");
  EXPECT_EQ(find_mistake(&emulated_paired_hopper, kSeedsOfTheKernel, 2), "");
}

}  // namespace
}  // namespace ringlab::cuda
