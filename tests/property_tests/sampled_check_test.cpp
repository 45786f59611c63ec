// A check of some rows finds what is wrong with them.
#include "property_tests/sampled_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"
#include "property_tests/subject_list.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"

namespace ringlab::verify {
namespace {

std::vector<std::int64_t> borders_of(const Layout& layout) {
  std::set<std::int64_t> borders;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const PositionRun& run : layout.positions(rank).runs()) {
      borders.insert(run.first);
      borders.insert(run.first + (run.count - 1) * run.stride);
    }
  }
  return {borders.begin(), borders.end()};
}

TEST(SampledRows, are_as_many_as_wanted_with_both_ends_and_the_borders_of_chunks) {
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (const int ranks : {1, 2, 5, 9}) {
      for (const std::int64_t tokens : {1, 2, 3, 8, 41}) {
        const Layout layout(kind, tokens, ranks);
        const std::vector<std::int64_t> borders = borders_of(layout);
        for (std::int64_t count = 1; count <= tokens + 2; ++count) {
          const std::vector<std::int64_t> rows = sample_rows(layout, count);
          ASSERT_EQ(std::ssize(rows), std::min(count, tokens));
          ASSERT_TRUE(std::ranges::is_sorted(rows));
          ASSERT_EQ(std::ranges::adjacent_find(rows), rows.end()) << "twice the same";
          ASSERT_EQ(rows.front(), 0);
          ASSERT_EQ(rows.back(), count > 1 ? tokens - 1 : 0);
          if (count < std::ssize(borders)) continue;
          ASSERT_TRUE(std::ranges::includes(rows, borders));
        }
      }
    }
  }
}

TEST(SampledRows, leave_no_gap_twice_as_wide_as_another_when_there_are_no_borders) {
  const std::vector<std::int64_t> rows =
      sample_rows(Layout(LayoutKind::contiguous, 1 << 20, 1), 64);
  std::int64_t least = 1 << 20, most = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    least = std::min(least, rows[i] - rows[i - 1]);
    most = std::max(most, rows[i] - rows[i - 1]);
  }
  EXPECT_LE(most, 2 * least + 2);
}

struct SampledTrial {
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  std::vector<std::int64_t> rows;
  std::string text;
  SampledCheck check() const {
    return {.problem = problem,
            .profile = ring::engine_profile(problem, options),
            .rows = rows,
            .threads = 2};
  }
};

SampledTrial random_trial(Draws& draws) {
  Case c = limited_to(random_case(draws), engine_subject().can);
  c.modifiers.dropout_percent = 0;  // refused: depends on batch and head
  c.shape.q_tokens = std::clamp<std::int64_t>(c.shape.q_tokens, 1, 30);
  c.shape.kv_tokens = std::clamp<std::int64_t>(c.shape.kv_tokens, 1, 30);
  c = fitted(c);
  SampledTrial trial{make_problem(c), make_options(c), make_tensors(c), {}, to_token(c)};
  trial.rows = sample_rows(make_layout(trial.options, c.shape.q_tokens, {}),
                           draws.between(1, c.shape.q_tokens));
  return trial;
}

AttentionOutput sampled(const RunResult& run, const std::vector<std::int64_t>& rows) {
  const Positions positions = Positions::from_list(rows);
  return {shard_of<double>(run.output.out.view(), positions),
          shard_of<double>(run.output.lse.view(), positions)};
}

TEST(SampledCheck, passes_what_is_right_and_compares_every_element_of_the_rows) {
  Draws draws(31);
  for (int i = 0; i < 200; ++i) {
    const SampledTrial trial = random_trial(draws);
    const AttentionInput input = trial.data.input(trial.problem);
    const AttentionOutput got = sampled(ring::Engine().run(input, trial.options), trial.rows);
    const Report report = check_sampled(trial.check(), groups_of(input), got);
    ASSERT_TRUE(report.passed()) << trial.text << "\n" << report.summary();
    ASSERT_EQ(report.tensors[0].compared, got.out.size()) << trial.text;
    ASSERT_EQ(report.tensors[1].compared, got.lse.size()) << trial.text;
  }
}

TEST(SampledCheck, names_the_place_of_every_single_wrong_number) {
  Case c;
  c.shape = {2, 4, 2, 13, 11, 3, 2};
  c.ranks = 3;
  SampledTrial trial{make_problem(c), make_options(c), make_tensors(c), {}, to_token(c)};
  trial.rows = sample_rows(make_layout(trial.options, c.shape.q_tokens, {}), 5);
  const AttentionInput input = trial.data.input(trial.problem);
  const AttentionOutput right = sampled(ring::Engine().run(input, trial.options), trial.rows);
  for_each_index(right.out.extents(), [&](auto b, auto h, auto t, auto channel) {
    AttentionOutput wrong = right;
    wrong.out(b, h, t, channel) += 0.01;
    wrong.lse(b, h, t, 0) = std::numeric_limits<double>::quiet_NaN();
    const Report report = check_sampled(trial.check(), groups_of(input), wrong);
    for (const TensorReport& tensor : report.tensors) {
      ASSERT_EQ(tensor.failed, 1);
      ASSERT_EQ(tensor.worst.batch, b);
      ASSERT_EQ(tensor.worst.head, h);
      ASSERT_EQ(tensor.worst.token, trial.rows[static_cast<std::size_t>(t)]);
    }
    ASSERT_EQ(report.tensors[0].worst.channel, channel);
  });
}

TEST(SampledCheck, finds_a_mask_that_is_off_by_one_key) {
  Draws draws(32);
  int found = 0, tried = 0;
  for (int i = 0; i < 60; ++i) {
    Case c;
    c.seed = static_cast<std::uint64_t>(i);
    c.shape = {1, 2, 1, 40, 40, 4, 4};
    c.mask = "causal";
    c.ranks = static_cast<int>(draws.between(1, 5));
    c.layout = LayoutKind::zigzag;
    Case off = c;
    off.mask = "causal+window:38,0";  // the last row does not see the first key
    SampledTrial trial{make_problem(c), make_options(c), make_tensors(c), {}, to_token(c)};
    trial.rows = sample_rows(make_layout(trial.options, 40, {}), 12);
    const AttentionInput input = trial.data.input(make_problem(off));
    const AttentionOutput got = sampled(ring::Engine().run(input, trial.options), trial.rows);
    found += !check_sampled(trial.check(), groups_of(input), got).passed();
    ++tried;
  }
  EXPECT_EQ(found, tried);
}

TEST(SampledCheck, of_no_rows_compares_nothing) {
  Case c;
  c.shape = {1, 2, 1, 5, 5, 2, 2};
  const SampledTrial trial{make_problem(c), make_options(c), make_tensors(c), {}, ""};
  const Report report =
      check_sampled(trial.check(), groups_of(trial.data.input(trial.problem)),
                    {Tensor<double>(Extents{1, 2, 0, 2}), Tensor<double>(Extents{1, 2, 0, 1})});
  EXPECT_EQ(report.tensors[0].compared, 0);
}

TEST(SampledCheck, refuses_results_of_another_number_of_rows) {
  Case c;
  c.shape = {1, 2, 1, 5, 5, 2, 2};
  SampledTrial trial{make_problem(c), make_options(c), make_tensors(c), {0, 4}, ""};
  EXPECT_THROW(
      check_sampled(trial.check(), groups_of(trial.data.input(trial.problem)),
                    {Tensor<double>(Extents{1, 2, 3, 2}), Tensor<double>(Extents{1, 2, 3, 1})}),
      Error);
}

}  // namespace
}  // namespace ringlab::verify
