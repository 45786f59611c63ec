// Stage 21 as it is used: token by token, with a cache that grows.
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

Tensor<double> tokens_of(const Tensor<double>& all, std::int64_t first, std::int64_t count) {
  Extents extents = all.extents();
  extents.tokens = count;
  Tensor<double> part(extents);
  for_each_index(
      extents, [&](auto b, auto h, auto t, auto c) { part(b, h, t, c) = all(b, h, first + t, c); });
  return part;
}

AttentionOutput row_of(const AttentionOutput& all, std::int64_t row) {
  return {tokens_of(all.out, row, 1), tokens_of(all.lse, row, 1)};
}

TEST(DecodeTest, token_by_token_it_is_the_prefill) {
  constexpr std::int64_t kTokens = 13;
  const Problem whole = make_problem({1, 4, 2, kTokens, kTokens, 5, 3}, "causal");
  const AttentionTensors tensors = random_tensors(whole, 21);
  for (const int ranks : {1, 2, 4, 16}) {
    RunOptions options;
    options.ranks = ranks;
    options.layout = LayoutKind::striped;  // what is cached stays where it is
    const Expected prefill =
        expected_of(tensors.input(whole), stage_named("decode").profile(whole, options));
    for (std::int64_t token = 0; token < kTokens; ++token) {
      const Problem one = make_problem({1, 4, 2, 1, token + 1, 5, 3}, "full");
      const AttentionTensors cached{tokens_of(tensors.q, token, 1),
                                    tokens_of(tensors.k, 0, token + 1),
                                    tokens_of(tensors.v, 0, token + 1)};
      const RunResult result = stage_named("decode").run(cached.input(one), options);
      EXPECT_EQ(
          difference(result.output, {row_of(prefill.exact, token), row_of(prefill.allowed, token)}),
          "")
          << "token " << token << " on " << ranks << " ranks";
      const int owner = static_cast<int>(token % ranks);
      EXPECT_EQ(make_layout(options, token + 1, {}).positions(owner).to_list().back(), token);
    }
  }
}

TEST(DecodeTest, one_query_sends_nothing_but_itself_and_its_answers) {
  const Problem problem = make_problem({1, 4, 2, 1, 100, 8, 8}, "full");
  RunOptions options;
  options.ranks = 4;
  const RunResult result =
      stage_named("decode").run(random_tensors(problem, 1).input(problem), options);
  const std::int64_t query = 4 * 8 * 4, answer = 4 * (2 + 8) * 4;
  EXPECT_EQ(result.ranks[0].sent_bytes, 3 * query);
  for (const int other : {1, 2, 3}) {
    EXPECT_EQ(result.ranks[static_cast<std::size_t>(other)].sent_bytes, answer) << other;
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
