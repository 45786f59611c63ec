// A check of a job's rows, rank by rank, finds what a check of all rows finds.
#include "cli/run/run_check.h"

#include <gtest/gtest.h>

#include "reference/core/shards.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab::cli {
namespace {

/// Off by the bound of the profile, so that the reference cannot say which side of it that is.
AttentionOutput at_the_bound(const AttentionInput& input, const NumericsProfile& profile) {
  const ExactForward exact = reference_for(input, {});
  const ForwardTolerance allowed = forward_tolerance(input, exact, profile);
  AttentionOutput output{exact.out, exact.lse};
  for (std::size_t i = 0; i < output.out.values().size(); ++i) {
    output.out.values()[i] += allowed.out.values()[i] - exact.out_error.values()[i];
  }
  return output;
}

RunResult result_of(const AttentionOutput& output) {
  RunResult result;
  result.output = output;
  return result;
}

TEST(RunCheck, ranks_settle_together_what_one_process_settles) {
  const NumericsProfile profile{.out_dtype = DType::f64, .u_accumulate = 0x1p-53};
  const RunOptions options{.ranks = 3, .layout = LayoutKind::zigzag};
  std::int64_t undecided = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const testing::RandomCase c = testing::CaseMaker(seed, {}).make();
    const AttentionInput input = c.input();
    const AttentionOutput output = at_the_bound(input, profile);
    const verify::Settlement whole = check_result(input, profile, result_of(output)).settled;
    undecided += whole.undecided;
    verify::Settlement ranks;
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Positions rows =
          make_layout(options, input.problem.shape.q_tokens, options.q_layout).positions(rank);
      const AttentionOutput mine{shard_of<double>(output.out.view(), rows),
                                 shard_of<double>(output.lse.view(), rows)};
      ranks.add(check_shard(input, options, profile, rank, result_of(mine)).settled);
    }
    EXPECT_EQ(ranks.undecided, whole.undecided) << seed;
    EXPECT_EQ(ranks.right, whole.right) << seed;
    EXPECT_EQ(ranks.wrong, whole.wrong) << seed;
    EXPECT_EQ(ranks.left, whole.left) << seed;
  }
  EXPECT_GT(undecided, 0);
}

}  // namespace
}  // namespace ringlab::cli
