// The all-to-all of stage 18: undone by itself.
#include "stages/18_heads/heads.h"

#include "stages/common/run_ranks.h"
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"

namespace ringlab::stages::testing {
namespace {

/// q there and back again, into out.
template <class Element>
void there_and_back(RankProblem<Element>& r) {
  Extents extents = heads::by_heads(r, r.q)[static_cast<std::size_t>(r.rank())].extents;
  extents.tokens = r.q_layout.tokens();
  MeteredBuffer<Element> gathered(r.memory, extents.size());
  const auto parts = heads::by_tokens(r.q_layout, dense_view(gathered.data(), extents));
  heads::all_to_all(r, heads::kQueryRows, heads::by_heads(r, r.q), parts);
  heads::all_to_all(r, heads::kOutRows, parts, heads::by_heads(r, r.out));
}

TEST(HeadsTest, the_all_to_all_is_its_own_inverse) {
  RandomRuns runs(18);
  for (int round = 0; round < repetitions(100); ++round) {
    Shape shape = runs.shape();
    shape.v_dim = shape.head_dim;  // out has the extents of q
    const Problem problem = make_problem(shape, "full");
    RunOptions options = runs.options();
    if (runs.below(2) == 1) options.q_layout = runs.uneven_layout(shape.q_tokens, options.ranks);
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    const RunResult result = run_ranks<float>(
        tensors.input(problem), options,
        []<class Element>(RankProblem<Element>& r) { there_and_back(r); }, "there and back");
    ASSERT_EQ(result.output.out.values(), tensors.q.values()) << describe(problem, options);
  }
}

TEST(HeadsTest, k_and_v_travel_once_for_a_group) {
  for (const auto& [kv_heads, share] : {std::pair{8, 8}, {4, 4}, {2, 2}}) {
    const Problem problem = make_problem({1, 8, kv_heads, 32, 32, 4, 4}, "full");
    RunOptions options;
    options.ranks = 2;
    const RunResult result =
        stage_named("heads").run(random_tensors(problem, 1).input(problem), options);
    const std::int64_t queries_and_answers = 8 / 2 * 16 * (4 + 4 + 1), bytes = 4;
    EXPECT_EQ(result.ranks[0].sent_bytes, (queries_and_answers + share / 2 * 16 * (4 + 4)) * bytes);
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
