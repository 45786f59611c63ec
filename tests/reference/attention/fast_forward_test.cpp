// fast_forward: its certified error against 113 bits and against the compensated oracle, what it
// ignores, what it refuses, and what it hands over.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>

#include "optimized/cpu/vectors.h"
#include "property_tests/oracles/quad_attention.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "tests/reference/attention/random_case.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

using quad::Quad;

/// |value - truth| / bound.
struct FastRatios {
  double worst = 0;
  std::int64_t compared = 0;
  std::int64_t exceeded = 0;

  void add(double value, const Quad& truth, double bound) {
    const Quad error = abs(Quad(value) - truth);
    ++compared;
    if (!(error <= Quad(bound))) ++exceeded;
    if (error != 0) worst = std::max(worst, static_cast<double>(Quad(error / Quad(bound))));
  }
  void add(const ExactForward& got, const quad::Forward<Quad>& truth) {
    ASSERT_EQ(got.out.values().size(), truth.out.size());
    for (std::size_t i = 0; i < truth.out.size(); ++i) {
      add(got.out.values()[i], truth.out[i], got.out_error.values()[i]);
    }
    for (std::size_t i = 0; i < truth.lse.size(); ++i) {
      if (truth.empty[i]) {
        EXPECT_EQ(got.lse.values()[i], -kInfinity);
        EXPECT_EQ(got.lse_error.values()[i], 0);
      } else {
        add(got.lse.values()[i], truth.lse[i], got.lse_error.values()[i]);
      }
    }
  }
};

DType dtype_of_fast_case(std::uint64_t seed) {
  constexpr DType kTypes[] = {DType::f64, DType::f64, DType::f32, DType::f16, DType::bf16};
  return kTypes[seed % 5];
}

/// Runs `check` with every kind of vectors that this processor has.
template <class Check>
void with_all_vectors(const Check& check) {
  for (const std::string& name : cpu::available_vectors()) {
    SCOPED_TRACE(name);
    cpu::use_vectors(name);
    check(name);
  }
  cpu::use_vectors(cpu::available_vectors().front());
}

/// Within the errors of both.
void expect_agreement(const ExactForward& fast, const ExactForward& exact) {
  ASSERT_EQ(fast.out.extents(), exact.out.extents());
  for (std::size_t i = 0; i < exact.out.values().size(); ++i) {
    const double allowed = fast.out_error.values()[i] + exact.out_error.values()[i];
    ASSERT_LE(std::abs(fast.out.values()[i] - exact.out.values()[i]), allowed) << i;
  }
  for (std::size_t i = 0; i < exact.lse.values().size(); ++i) {
    const double allowed = fast.lse_error.values()[i] + exact.lse_error.values()[i];
    if (fast.lse.values()[i] == exact.lse.values()[i]) continue;  // both -inf, too
    ASSERT_LE(std::abs(fast.lse.values()[i] - exact.lse.values()[i]), allowed) << i;
  }
}

/// Against 113 bits, with every kind of vectors that this processor has.
void expect_certified(const std::vector<testing::RandomCase>& cases) {
  std::map<std::string, FastRatios> ratios;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const quad::Forward<Quad> truth = quad::forward<Quad>(cases[i].input());
    with_all_vectors([&](const std::string& name) {
      ratios[name].add(fast_forward(cases[i].input()), truth);
      ASSERT_EQ(ratios[name].exceeded, 0) << "case " << i;
    });
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (const auto& [name, ratio] : ratios) {
    std::printf("  %-12s %8ld compared, worst error / certified %.3f\n", name.c_str(),
                static_cast<long>(ratio.compared), ratio.worst);
    EXPECT_GT(ratio.worst, 1e-2) << "a bound this wide says nothing";
  }
}

TEST(FastForward, stays_within_its_certified_error_in_ten_thousand_random_cases) {
  std::vector<testing::RandomCase> cases;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    cases.push_back(testing::random_case(seed, {.dtype = dtype_of_fast_case(seed)}));
  }
  expect_certified(cases);
}

TEST(FastForward, stays_within_its_certified_error_over_many_blocks_of_keys) {
  // Several blocks of 64 keys and tiles of queries; scores up to thousands, so that maxima rise
  // late and by more than the exponent range, and weights are flushed.
  std::vector<testing::RandomCase> cases;
  for (std::uint64_t seed = 0; seed < 72; ++seed) {
    cases.push_back(
        testing::random_case(seed, {.tokens = 200, .dim = 9, .dtype = dtype_of_fast_case(seed)}));
    double& scale = cases.back().problem.scale;
    scale = std::ldexp(scale, static_cast<int>(seed % 12));
  }
  expect_certified(cases);
}

TEST(FastForward, agrees_with_the_compensated_oracle_within_the_errors_of_both) {
  with_all_vectors([](const std::string&) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const testing::RandomCase c =
          testing::random_case(seed, {.tokens = 300, .dim = 70, .dtype = dtype_of_fast_case(seed)});
      expect_agreement(fast_forward(c.input()), exact_forward(c.input()));
      if (::testing::Test::HasFatalFailure()) FAIL() << "random_case(" << seed << ")";
    }
  });
}

TEST(FastForward, has_an_error_below_a_thousandth_of_what_an_f32_subject_is_allowed) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    testing::RandomCase c;  // normal numbers, the customary scale
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    const std::int64_t tokens = 1 + static_cast<std::int64_t>(seed) * 40, dim = seed % 2 ? 64 : 9;
    c.problem.shape = {1, 1, 1, tokens, tokens, dim, dim};
    c.problem.scale = default_scale(dim);
    c.problem.mask = Mask(seed % 3 ? std::vector<MaskTerm>{CausalMask{}} : std::vector<MaskTerm>{})
                         .bind(tokens, tokens);
    for (Tensor<double>* tensor : {&c.tensors.q, &c.tensors.k, &c.tensors.v}) {
      *tensor = Tensor<double>(c.problem.shape.q());
      for (double& x : tensor->values()) x = round_to(DType::f32, normal(random));
    }
    const ExactForward fast = fast_forward(c.input());
    const ForwardTolerance allowed =
        forward_tolerance(c.input(), exact_forward(c.input()), carried_profile(DType::f32, 1));
    for (std::size_t i = 0; i < allowed.out.values().size(); ++i) {
      worst = std::max(worst, fast.out_error.values()[i] / allowed.out.values()[i]);
    }
    for (std::size_t i = 0; i < allowed.lse.values().size(); ++i) {
      worst = std::max(worst, fast.lse_error.values()[i] / allowed.lse.values()[i]);
    }
  }
  std::printf("  largest certified error / tolerance of an f32 subject %.2g\n", worst);
  EXPECT_LT(worst, 1e-3);
  EXPECT_GT(worst, 0);
}

TEST(FastForward, gives_the_same_bits_on_any_number_of_threads) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 250, .dim = 9});
    const ExactForward one = fast_forward(c.input());
    const ExactForward three = fast_forward(c.input(), {.threads = 3});
    EXPECT_EQ(one.out.values(), three.out.values());
    EXPECT_EQ(one.lse.values(), three.lse.values());
    EXPECT_EQ(one.out_error.values(), three.out_error.values());
    EXPECT_EQ(one.lse_error.values(), three.lse_error.values());
  }
}

TEST(FastForward, computes_the_rows_that_are_asked_for) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 140, .dim = 9});
    ExactOptions options{.threads = 2};
    const std::int64_t step = 1 + static_cast<std::int64_t>(seed % 17);
    for (std::int64_t i = step - 1; i < c.problem.shape.q_tokens; i += step) {
      options.rows.push_back(i);
    }
    if (options.rows.empty()) continue;
    expect_agreement(fast_forward(c.input(), options), exact_forward(c.input(), options));
    if (::testing::Test::HasFatalFailure()) FAIL() << "random_case(" << seed << ")";
  }
}

/// A head of `tokens` equal queries and keys, d = 1, with values 0, 1, 2, …
testing::RandomCase plain_case(std::int64_t tokens, const Mask& mask) {
  testing::RandomCase c;
  c.problem.shape = {1, 1, 1, tokens, tokens, 1, 1};
  c.problem.dtype = DType::f64;
  c.problem.mask = mask.bind(tokens, tokens);
  c.tensors = {Tensor<double>(c.problem.shape.q(), 1.0), Tensor<double>(c.problem.shape.k(), 1.0),
               Tensor<double>(c.problem.shape.v())};
  for (std::int64_t j = 0; j < tokens; ++j) c.tensors.v(0, 0, j, 0) = static_cast<double>(j);
  return c;
}

TEST(FastForward, averages_equal_scores_exactly) {
  for (const std::int64_t tokens : {1, 2, 7, 8, 23, 24, 25, 63, 64, 65, 97, 128, 200}) {
    const testing::RandomCase c = plain_case(tokens, Mask({CausalMask{}}));
    const ExactForward fast = fast_forward(c.input());
    for (std::int64_t i = 0; i < tokens; ++i) {
      const double n = static_cast<double>(i + 1);
      // The sums are exact; the reciprocal and the product round.
      EXPECT_NEAR(fast.out(0, 0, i, 0), static_cast<double>(i) / 2, n * 0x1p-53);
      EXPECT_NEAR(fast.lse(0, 0, i, 0), 1 + std::log(n), fast.lse_error(0, 0, i, 0));
    }
  }
}

TEST(FastForward, never_reads_what_every_row_is_kept_from) {
  // Keys 10, 65 and 130 are hidden from all queries, query 3 sees nothing.
  constexpr std::int64_t kTokens = 131;
  std::vector<std::uint8_t> bits(kTokens * kTokens, 1);
  for (std::size_t i = 0; i < kTokens; ++i) {
    for (const std::size_t j : {10, 65, 130}) bits[i * kTokens + j] = 0;
    bits[3 * kTokens + i] = 0;
  }
  const testing::RandomCase clean =
      plain_case(kTokens, Mask({BitMask{kTokens, kTokens, bits, "written here"}}));
  testing::RandomCase dirty = clean;
  for (const std::int64_t j : {10, 65, 130}) {
    dirty.tensors.k(0, 0, j, 0) = kNaN;
    dirty.tensors.v(0, 0, j, 0) = -kInfinity;
  }
  dirty.tensors.q(0, 0, 3, 0) = kNaN;
  const ExactForward expected = fast_forward(clean.input());
  const ExactForward got = fast_forward(dirty.input());
  EXPECT_EQ(got.out.values(), expected.out.values());
  EXPECT_EQ(got.lse.values(), expected.lse.values());
  EXPECT_EQ(got.out_error.values(), expected.out_error.values());
  EXPECT_EQ(got.lse(0, 0, 3, 0), -kInfinity);
  EXPECT_EQ(got.out(0, 0, 3, 0), 0);
  EXPECT_EQ(got.out_error(0, 0, 3, 0), 0);
}

TEST(FastForward, never_reads_keys_after_the_last_sampled_row) {
  testing::RandomCase c = plain_case(100, Mask({CausalMask{}}));
  const ExactOptions options{.rows = {20, 40}};
  const ExactForward expected = fast_forward(c.input(), options);
  for (std::int64_t j = 41; j < 100; ++j) {
    c.tensors.q(0, 0, j, 0) = c.tensors.k(0, 0, j, 0) = c.tensors.v(0, 0, j, 0) = kNaN;
  }
  EXPECT_EQ(fast_forward(c.input(), options).out.values(), expected.out.values());
}

TEST(FastForward, refuses_what_is_visible_and_not_finite) {
  const testing::RandomCase clean = plain_case(70, Mask());
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (Tensor<double> AttentionTensors::*tensor :
         {&AttentionTensors::q, &AttentionTensors::k, &AttentionTensors::v}) {
      testing::RandomCase c = clean;
      (c.tensors.*tensor)(0, 0, 67, 0) = bad;
      EXPECT_THROW(fast_forward(c.input()), Error) << bad;
      EXPECT_THROW(fast_forward(c.input(), {.threads = 2}), Error) << bad;
    }
  }
}

TEST(FastForward, refuses_views_and_rows_that_do_not_fit_the_problem) {
  testing::RandomCase c = plain_case(2, Mask());
  using Rows = std::vector<std::int64_t>;
  for (const Rows& rows : {Rows{2}, Rows{-1}, Rows{1, 0}, Rows{1, 1}}) {
    EXPECT_THROW(fast_forward(c.input(), {.rows = rows}), Error);
  }
  c.tensors.k = Tensor<double>({1, 1, 3, 1});
  EXPECT_THROW(fast_forward(c.input()), Error);
}

TEST(FastForward, hands_over_what_may_overflow) {
  testing::RandomCase c = plain_case(5, Mask());
  c.tensors.q = Tensor<double>(c.problem.shape.q(), 1e200);
  EXPECT_EQ(fast_forward(c.input()).out.values(), exact_forward(c.input()).out.values());
  c.tensors.k = Tensor<double>(c.problem.shape.k(), 1e200);  // now a score does overflow
  EXPECT_THROW(fast_forward(c.input()), Error);
  c = plain_case(5, Mask());
  c.problem.scale = 0x1p-1060;
  EXPECT_EQ(fast_forward(c.input()).lse.values(), exact_forward(c.input()).lse.values());
}

TEST(FastForward, hands_over_problems_with_modifiers) {
  testing::RandomCase c = plain_case(5, Mask());
  const ExactForward plain = fast_forward(c.input());
  c.problem.modifiers.softcap = 0.5;
  const ExactForward capped = fast_forward(c.input());
  EXPECT_EQ(capped.lse.values(), exact_forward(c.input()).lse.values());
  EXPECT_NE(capped.lse.values(), plain.lse.values());
}

TEST(FastForward, reads_strided_views_like_dense_ones) {
  for (const std::uint64_t seed : {5, 8, 13}) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 150, .dim = 9});
    const Extents e = c.problem.shape.k();
    if (e.size() == 0) continue;
    // Tokens innermost and reversed: stored (batch, head, channel, token), last token first.
    std::vector<double> storage(static_cast<std::size_t>(e.size()));
    TensorView<double> view{storage.data() + (e.tokens - 1),
                            e,
                            {e.heads * e.channels * e.tokens, e.channels * e.tokens, -1, e.tokens}};
    for_each_index(e, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t channel) {
      view(b, h, t, channel) = c.tensors.k(b, h, t, channel);
    });
    AttentionInput input = c.input();
    const ExactForward dense = fast_forward(input);
    input.k = view;
    EXPECT_EQ(fast_forward(input).out.values(), dense.out.values());
  }
}

}  // namespace
}  // namespace ringlab
