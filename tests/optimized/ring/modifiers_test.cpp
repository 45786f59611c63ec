// Score modifiers in the engine: the same pairs dropped and each sink counted once however many
// ranks there are, numbers at the ends of their ranges, and every kind of vectors.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "optimized/cpu/vectors.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "property_tests/case.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/draws.h"
#include "reference/attention/exact.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Case;

struct ModifiedTrial {
  Problem problem;
  RunOptions options;
  AttentionTensors data;
  Tensor<double> dout;

  explicit ModifiedTrial(const Case& c)
      : problem(verify::make_problem(c)),
        options(verify::make_options(c)),
        data(verify::make_tensors(c)),
        dout(verify::make_dout(c)) {}
  AttentionInput input() const {
    AttentionInput input = data.input(problem);
    input.dout = dout.view();
    return input;
  }
};

/// Row t of every head is the t-th unit vector.
void make_one_hot(Tensor<double>& tensor) {
  for_each_index(tensor.extents(),
                 [&](auto b, auto h, auto t, auto c) { tensor(b, h, t, c) = t == c ? 1 : 0; });
}

void expect_numbers(const Tensor<double>& tensor, const std::string& where) {
  for (const double x : tensor.values()) ASSERT_FALSE(std::isnan(x)) << where;
}

/// Out and lse within the bounds of the exact reference, and numbers.
void expect_exact_forward(const ModifiedTrial& trial, const std::string& where) {
  const AttentionInput input = trial.data.input(trial.problem);
  const RunResult run = Engine().run(input, trial.options);
  const NumericsProfile profile = engine_profile(trial.problem, trial.options);
  const ExactForward exact = exact_forward(input);
  const Report report =
      compare_forward(run.output, exact, forward_tolerance(input, exact, profile));
  EXPECT_TRUE(report.passed()) << where << "\n" << report.summary();
  expect_numbers(run.output.out, where);
  expect_numbers(run.output.lse, where);
}

/// The gradients, too.
void expect_exact(const ModifiedTrial& trial, const std::string& where) {
  expect_exact_forward(trial, where);
  const AttentionInput input = trial.input();
  const AttentionGradients got = Engine().run(input, trial.options).gradients.value();
  const NumericsProfile profile = engine_profile(trial.problem, trial.options);
  const ExactBackward slope = exact_backward(input, *input.dout);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, slope, profile);
  Report report;
  report.tensors = {compare("dq", got.dq.view(), slope.dq.view(), allowed.dq.view()),
                    compare("dk", got.dk.view(), slope.dk.view(), allowed.dk.view()),
                    compare("dv", got.dv.view(), slope.dv.view(), allowed.dv.view())};
  EXPECT_TRUE(report.passed()) << where << "\n" << report.summary();
  for (const Tensor<double>* tensor : {&got.dq, &got.dk, &got.dv}) expect_numbers(*tensor, where);
}

/// With unit vectors for values out is the weights themselves, and with unit vectors for dout dV
/// is: zero for the pairs that are dropped, and for no other.
TEST(EngineDropout, drops_the_pairs_that_the_reference_drops_for_any_ranks_layout_and_tiles) {
  constexpr std::int64_t kQueries = 29, kKeys = 37;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const LayoutKind layout :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        Case c;
        c.shape = {2, 2, 1, kQueries, kKeys, 4, kKeys};
        c.dtype = dtype;
        c.ranks = ranks;
        c.layout = layout;
        c.tile_queries = 5 * ranks;
        c.tile_keys = 3 + 2 * ranks;
        c.family = verify::Family::uniform;
        c.modifiers.dropout_percent = 40;
        ModifiedTrial trial(c);
        make_one_hot(trial.data.v);
        make_one_hot(trial.dout);
        const RunResult run = Engine().run(trial.input(), trial.options);
        const ExactForward exact = exact_forward(trial.input());
        std::int64_t dropped = 0;
        for_each_index(exact.out.extents(), [&](auto b, auto h, auto i, auto j) {
          const bool drops = exact.out(b, h, i, j) == 0;
          ASSERT_EQ(run.output.out(b, h, i, j) == 0, drops)
              << ranks << " ranks, query " << i << ", key " << j;
          dropped += drops;
        });
        EXPECT_GT(dropped, 2 * 2 * kQueries * kKeys / 3);
        const ExactBackward slope = exact_backward(trial.input(), trial.dout.view());
        for_each_index(slope.dv.extents(), [&](auto b, auto h, auto j, auto i) {
          ASSERT_EQ(run.gradients->dv(b, h, j, i) == 0, slope.dv(b, h, j, i) == 0)
              << ranks << " ranks, query " << i << ", key " << j;
        });
      }
    }
  }
}

/// Scores of 0, a sink of 0 and n keys: lse = log(n + 1).
TEST(EngineSinks, count_once_however_many_ranks_and_keys_there_are) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (const std::int64_t keys : {0, 1, 3, 16}) {
      Case c;
      c.shape = {1, 2, 2, 7, keys, 2, 3};
      c.ranks = ranks;
      ModifiedTrial trial(c);
      for (double& x : trial.data.q.values()) x = 0;
      trial.problem.modifiers.sinks = {0, 0};
      const RunResult run = Engine().run(trial.input(), trial.options);
      for (const double lse : run.output.lse.values()) {
        EXPECT_NEAR(lse, std::log(static_cast<double>(keys + 1)), 4 * 0x1p-24 * 3);
      }
    }
  }
}

TEST(EngineSinks, are_all_there_is_in_rows_that_see_no_key) {
  for (const int ranks : {1, 2, 5}) {
    Case c;
    c.shape = {1, 2, 1, 9, 4, 2, 2};  // queries 0 … 4 stand before the first key
    c.mask = "causal";
    c.ranks = ranks;
    ModifiedTrial trial(c);
    trial.problem.modifiers.sinks = {3.25, -0x1p40};
    const RunResult run = Engine().run(trial.input(), trial.options);
    for (std::int64_t h = 0; h < 2; ++h) {
      const double sink = trial.problem.modifiers.sinks[static_cast<std::size_t>(h)];
      for (std::int64_t i = 0; i < 5; ++i) {
        // Into base 2 and back: a rounding each.
        EXPECT_NEAR(run.output.lse(0, h, i, 0), sink, std::abs(sink) * 2.01 * 0x1p-24);
        EXPECT_EQ(run.output.out(0, h, i, 0), 0);
        EXPECT_EQ(run.gradients->dq(0, h, i, 0), 0);
      }
    }
    expect_exact(trial, std::to_string(ranks) + " ranks");
  }
}

TEST(EngineModifiers, are_exact_at_the_ends_of_their_ranges) {
  const Shape shapes[] = {{1, 2, 1, 1, 50, 3, 2}, {1, 2, 2, 3, 3, 2, 2}, {2, 1, 1, 20, 9, 4, 5}};
  verify::Draws draws(21);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (int i = 0; i < repetitions(150); ++i) {
      Case c;
      c.seed = static_cast<std::uint64_t>(i);
      c.shape = shapes[i % 3];
      c.dtype = dtype;
      c.ranks = 1 + i % 7;
      c.layout = static_cast<LayoutKind>(i % 3);
      c.mask = i % 2 == 0 ? "causal" : "full";
      ModifiedTrial trial(verify::fitted(c));
      Modifiers& modifiers = trial.problem.modifiers;
      const double ends[] = {0x1p-64, 0x1p-20, 1, 0x1p20, 0x1p64};
      if (draws.chance(60)) modifiers.softcap = ends[draws.below(5)];
      const bool steep = draws.chance(20);
      for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
        modifiers.alibi_slopes.push_back(i % 4 < 2 ? ends[draws.below(steep ? 5 : 3)] : 0);
        modifiers.sinks.push_back((draws.chance(50) ? 1 : -1) * ends[draws.below(5)]);
      }
      if (draws.chance(50)) modifiers.sinks.clear();
      if (draws.chance(30)) modifiers.dropout = draws.chance(50) ? 1 - 0x1p-32 : 0x1p-40;
      const std::string where = modifiers_text(modifiers) + ", case " + std::to_string(i);
      // P is found from lse again, in which differences of scores are lost where scores are huge.
      steep ? expect_exact_forward(trial, where) : expect_exact(trial, where);
    }
  }
}

TEST(EngineModifiers, are_exact_on_every_kind_of_vectors) {
  for (const std::string& vectors : cpu::available_vectors()) {
    cpu::use_vectors(vectors);
    verify::Draws draws(22);
    for (int i = 0; i < repetitions(100); ++i) {
      Case c = verify::random_case(draws);
      c.shape.q_tokens = std::min<std::int64_t>(c.shape.q_tokens, 30);
      c.shape.kv_tokens = std::min<std::int64_t>(c.shape.kv_tokens, 30);
      c.modifiers = {.softcap = i % 2 * 9.0,
                     .alibi = i % 3 == 0,
                     .sinks = i % 5 < 2,
                     .dropout_percent = i % 4 == 0 ? 30 : 0};
      if (i % 7 == 0) {  // which bf16 kernels that multiply bf16 take
        c.dtype = DType::bf16;
        c.modifiers = {.sinks = true};
      }
      const ModifiedTrial trial(verify::fitted(c));
      expect_exact(trial, vectors + ", " + verify::to_token(c));
    }
  }
  cpu::use_vectors(cpu::available_vectors().front());
}

}  // namespace
}  // namespace ringlab::ring
