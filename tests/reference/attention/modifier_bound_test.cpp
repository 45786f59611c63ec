// The bounds of a subject that modifies scores: correct kernels always keep them, planted mistakes
// do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "reference/attention/exact.h"
#include "tests/reference/attention/emulated_backward.h"
#include "tests/reference/attention/random_modifiers.h"

namespace ringlab {
namespace {

using testing::BackwardMistake;
using testing::KernelOptions;
using testing::ModifierMistake;
using testing::RandomCase;

KernelOptions options_of(std::uint64_t seed) {
  KernelOptions options;
  options.tile = 1 + static_cast<std::int64_t>(seed % 7);
  options.powers_of_two = seed % 2 == 0;
  options.flush_to_zero = seed % 5 == 0;
  options.tanh_from_exp = seed % 3 == 0;
  options.sink_last = seed % 4 == 0;
  return options;
}

Report forward_report(const RandomCase& c, const KernelOptions& options) {
  const ExactForward exact = exact_forward(c.input());
  const ForwardTolerance allowed =
      forward_tolerance(c.input(), exact, testing::emulated_profile(c.problem, options));
  return compare_forward(testing::run_emulated_kernel(c.input(), options), exact, allowed);
}

Report backward_report(const RandomCase& c, const KernelOptions& options,
                       BackwardMistake mistake = BackwardMistake::none) {
  const ExactBackward exact = exact_backward(c.input(), c.dout.view());
  const BackwardTolerance allowed = backward_tolerance(
      c.input(), c.dout.view(), exact, testing::emulated_profile(c.problem, options));
  const testing::Gradients got = run_emulated_backward(c.input(), c.dout, options, mistake);
  return {{compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()),
           compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()),
           compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view())}};
}

struct Study {
  std::int64_t failed = 0;
  std::vector<double> ratios;

  void add(std::uint64_t seed, const RandomCase& c, const Report& report) {
    ratios.push_back(report.worst_ratio());
    if (report.passed() || failed++ > 0) return;
    ADD_FAILURE() << "seed " << seed << ", " << modifiers_text(c.problem.modifiers) << ": "
                  << report.summary();
  }
  /// No false alarm, from a bound that is not too wide to find anything.
  void expect_sound(const char* name, double least_worst) {
    std::sort(ratios.begin(), ratios.end());
    std::printf("  %-24s %5zu cases, %ld false alarms, worst error / bound %.3f, median %.3f\n",
                name, ratios.size(), static_cast<long>(failed), ratios.back(),
                ratios[ratios.size() / 2]);
    EXPECT_EQ(failed, 0);
    EXPECT_GT(ratios.back(), least_worst);
  }
};

TEST(ModifierBound, never_fails_a_correct_forward_pass) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Study study;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      const RandomCase c = testing::modified_case(seed, {.tokens = 20, .dim = 9, .dtype = dtype});
      KernelOptions options = options_of(seed);
      options.cast_probabilities = dtype == DType::bf16 && seed % 11 < 5;
      study.add(seed, c, forward_report(c, options));
    }
    study.expect_sound(std::string(dtype_info(dtype).name).c_str(), 0.05);
  }
}

TEST(ModifierBound, never_fails_a_correct_backward_pass) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Study study;
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
      const RandomCase c = testing::modified_case(seed, {.tokens = 14, .dim = 7, .dtype = dtype});
      KernelOptions options = options_of(seed);
      options.cast_probabilities = dtype == DType::bf16 && seed % 11 < 5;
      study.add(seed, c, backward_report(c, options));
    }
    study.expect_sound(std::string(dtype_info(dtype).name).c_str(), 0.02);
  }
}

/// The modifier that a mistake is about, on problems where it can be seen.
Modifiers one_modifier(const std::string& kind, std::uint64_t seed, const Shape& shape) {
  const auto heads = static_cast<std::size_t>(shape.q_heads);
  Modifiers modifiers;
  if (kind.find("cap") != std::string::npos) modifiers.softcap = 3;
  if (kind.find("alibi") != std::string::npos) modifiers.alibi_slopes.assign(heads, 0.5);
  if (kind.find("sink") != std::string::npos) modifiers.sinks.assign(heads, 0.5);
  if (kind.find("dropout") != std::string::npos) modifiers.dropout = 0.3;
  modifiers.dropout_seed = seed;
  return modifiers;
}

RandomCase case_with(const std::string& kind, std::uint64_t seed, DType dtype) {
  RandomCase c = testing::random_case(seed, {.tokens = 16, .dim = 3, .dtype = dtype});
  c.problem.modifiers = one_modifier(kind, seed, c.problem.shape);
  return c;
}

TEST(ModifierBound, finds_every_planted_mistake_of_the_forward_pass) {
  struct Planted {
    ModifierMistake mistake;
    const char* kind;
    const char* name;
  };
  constexpr Planted kPlanted[] = {
      {ModifierMistake::cap_after_bias, "cap alibi", "cap after bias"},
      {ModifierMistake::bias_of_the_other_end, "alibi", "alibi not aligned"},
      {ModifierMistake::cap_off_by_one_percent, "cap", "cap off by 1 %"},
      {ModifierMistake::sink_with_every_tile, "sink", "sink with every tile"},
      {ModifierMistake::sink_outside_the_lse, "sink", "sink outside the lse"},
      {ModifierMistake::dropout_in_row_sum, "dropout", "dropout in row sum"},
      {ModifierMistake::dropout_unscaled, "dropout", "dropout unscaled"},
      {ModifierMistake::dropout_of_the_next_key, "dropout", "dropout of the next key"},
  };
  for (const Planted& planted : kPlanted) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      int caught = 0;
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const RandomCase c = case_with(planted.kind, seed, dtype);
        const KernelOptions options{
            .sink_last = planted.mistake == ModifierMistake::sink_outside_the_lse,
            .modifier_mistake = planted.mistake};
        caught += !forward_report(c, options).passed();
      }
      std::printf("  %-24s %-5s caught in %d of 200 cases\n", planted.name,
                  std::string(dtype_info(dtype).name).c_str(), caught);
      EXPECT_GT(caught, 50) << planted.name;
    }
  }
}

TEST(ModifierBound, finds_every_planted_mistake_of_the_backward_pass) {
  struct Planted {
    BackwardMistake mistake;
    const char* kind;
  };
  for (const Planted& planted : {Planted{BackwardMistake::soft_capping_not_differentiated, "cap"},
                                 Planted{BackwardMistake::dropout_missing_in_dp, "dropout"},
                                 Planted{BackwardMistake::dropout_missing_in_dv, "dropout"}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      int caught = 0;
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const RandomCase c = case_with(planted.kind, seed, dtype);
        caught += !backward_report(c, {}, planted.mistake).passed();
      }
      std::printf("  caught in %d of 200 cases\n", caught);
      EXPECT_GT(caught, 50) << static_cast<int>(planted.mistake);
    }
  }
}

TEST(ModifierBound, promises_nothing_rather_than_nonsense_for_the_steepest_slopes) {
  std::int64_t unpromised = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomCase c = testing::modified_case(seed, {.tokens = 12, .dim = 5, .dtype = DType::f32});
    c.problem.modifiers.alibi_slopes.assign(static_cast<std::size_t>(c.problem.shape.q_heads),
                                            seed % 2 == 0 ? 0x1p64 : -0x1p64);
    const ExactBackward exact = exact_backward(c.input(), c.dout.view());
    const BackwardTolerance allowed =
        backward_tolerance(c.input(), c.dout.view(), exact, carried_profile(DType::f32, 2));
    const ExactForward forward = exact_forward(c.input());
    const ForwardTolerance outputs =
        forward_tolerance(c.input(), forward, carried_profile(DType::f32, 2));
    for (const Tensor<double>* each :
         {&allowed.dq, &allowed.dk, &allowed.dv, &exact.dq_error, &exact.dk_error, &exact.dv_error,
          &outputs.out, &outputs.lse, &forward.out_error, &forward.lse_error}) {
      for (const double bound : each->values()) {
        ASSERT_GE(bound, 0) << "seed " << seed;
        unpromised += std::isinf(bound);
      }
    }
  }
  EXPECT_GT(unpromised, 0);
}

TEST(ModifierBound, needs_to_know_how_exact_tanh_is) {
  // A tanh with an absolute error only, declared as one with a relative error: small scores tell.
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomCase c = testing::random_case(seed, {.tokens = 16, .dim = 3, .dtype = DType::f32});
    c.problem.modifiers.softcap = 1000;
    const KernelOptions options{.tanh_from_exp = true};
    NumericsProfile profile = testing::emulated_profile(c.problem, options);
    profile.tanh_floor = 0;
    const ExactForward exact = exact_forward(c.input());
    wrong += !compare_forward(testing::run_emulated_kernel(c.input(), options), exact,
                              forward_tolerance(c.input(), exact, profile))
                  .passed();
    EXPECT_TRUE(forward_report(c, options).passed()) << seed;
  }
  EXPECT_GT(wrong, 0);
}

}  // namespace
}  // namespace ringlab
