// The oracles agree: fp64 within its certificate, double-double within its bound, and the correctly
// rounded tier; and their comparison would have noticed if one of them were wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "reference/attention/exact.h"
#include "reference/precise/correctly_rounded.h"
#include "reference/precise/double_double.h"
#include "reference/precise/gradient_sums.h"
#include "reference/precise/rounded_gradients.h"
#include "reference/precise/rounding.h"
#include "tests/reference/attention/random_case.h"
#include "tests/reference/attention/random_modifiers.h"
#include "tests/reference/precise/enclosure.h"

namespace ringlab {
namespace {

using precise::Interval;
using testing::Enclosed;
using testing::RandomCase;

DType dtype_of_seed(std::uint64_t seed) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f64, DType::f16, DType::bf16};
  return kTypes[seed % 5];
}

RandomCase some_case(std::uint64_t seed, std::int64_t tokens) {
  const testing::CaseLimits limits{.tokens = tokens, .dtype = dtype_of_seed(seed)};
  return seed % 3 == 0 ? testing::modified_case(seed, limits) : testing::random_case(seed, limits);
}

/// Elements of `got` further from `exact` than both errors together.
std::int64_t disagreements(const Tensor<double>& got, const Tensor<double>& got_error,
                           const Tensor<DoubleDouble>& exact) {
  std::int64_t found = got.size() == exact.size() ? 0 : 1;
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    const DoubleDouble& x = exact.values()[i];
    const double value = got.values()[i];
    if (value == x.high && x.low == 0) continue;  // -inf among them
    const double off = std::abs((value - x.high) - x.low);
    if (!(off <= (got_error.values()[i] + x.error) * (1 + 0x1p-40))) ++found;
  }
  return found;
}

std::int64_t disagreements(const ExactForward& oracle, const DoubleDoubleForward& exact) {
  return disagreements(oracle.out, oracle.out_error, exact.out) +
         disagreements(oracle.lse, oracle.lse_error, exact.lse);
}

TEST(Oracles, fp64_and_double_double_agree_forward) {
  std::int64_t compared = 0, unbounded = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const RandomCase c = some_case(seed, 12);
    const DoubleDoubleForward exact = double_double_forward(c.input());
    ASSERT_EQ(disagreements(exact_forward(c.input()), exact), 0) << seed;
    ASSERT_EQ(disagreements(fast_forward(c.input()), exact), 0) << seed;
    compared += exact.out.size();
    for (const DoubleDouble& x : exact.out.values()) unbounded += std::isinf(x.error);
  }
  EXPECT_GT(compared, 50000);
  EXPECT_EQ(unbounded, 0);
}

TEST(Oracles, fp64_and_double_double_agree_backward) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const RandomCase c = some_case(seed, 9);
    const ExactBackward oracle = exact_backward(c.input(), c.dout.view());
    const DoubleDoubleBackward exact = double_double_backward(c.input(), c.dout.view());
    ASSERT_EQ(disagreements(oracle.dq, oracle.dq_error, exact.dq), 0) << seed;
    ASSERT_EQ(disagreements(oracle.dk, oracle.dk_error, exact.dk), 0) << seed;
    ASSERT_EQ(disagreements(oracle.dv, oracle.dv_error, exact.dv), 0) << seed;
  }
}

TEST(Oracles, double_double_keeps_its_bound_against_320_bits) {
  const precise::PrecisionScope scope(320);
  Enclosed out, lse;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const RandomCase c = some_case(seed, 10);
    const AttentionInput input = c.input();
    const Shape& shape = input.problem.shape;
    const auto rows = precise::wanted_rows({}, shape);
    const DoubleDoubleForward exact = double_double_forward(input);
    for (std::int64_t n = 0; n < exact.lse.size(); ++n) {
      const precise::RowPlace at = precise::place_of(shape, rows, n);
      const auto row = precise::soft_row<Interval>(input, at);
      if (row.sees_nothing()) continue;
      lse.expect(exact.lse(at.batch, at.q_head, at.slot, 0), precise::lse_of(row), "lse");
      const std::vector<Interval> values = precise::output_of(input, row);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto channel = static_cast<std::int64_t>(i);
        out.expect(exact.out(at.batch, at.q_head, at.slot, channel), values[i], "out");
      }
    }
  }
  std::printf("  o %ld, lse %ld compared; worst error / bound %.3f, %.3f\n", out.compared(),
              lse.compared(), out.worst(), lse.worst());
  EXPECT_GT(out.compared(), 5000);
  EXPECT_GT(out.worst(), 1e-3);  // not bounded by far too much
  EXPECT_GT(lse.worst(), 1e-3);
}

TEST(Oracles, double_double_gradients_keep_their_bounds_against_320_bits) {
  const precise::PrecisionScope scope(320);
  Enclosed enclosed;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomCase c = some_case(seed, 7);
    const DoubleDoubleBackward exact = double_double_backward(c.input(), c.dout.view());
    const auto sums = precise::gradient_sums<Interval>(
        c.input(), c.dout.view(), 1, [] { return 0; }, [] {});
    const auto expect_all = [&](const Tensor<DoubleDouble>& got, const std::vector<Interval>& truth,
                                const char* what) {
      for (std::size_t i = 0; i < truth.size(); ++i) {
        enclosed.expect(got.values()[i], truth[i], what);
      }
    };
    expect_all(exact.dq, sums.dq, "dq");
    expect_all(exact.dk, sums.dk, "dk");
    expect_all(exact.dv, sums.dv, "dv");
  }
  std::printf("  %ld compared; worst error / bound %.3f\n", enclosed.compared(), enclosed.worst());
  EXPECT_GT(enclosed.compared(), 5000);
  EXPECT_GT(enclosed.worst(), 1e-3);
}

/// Whether `rounded` is what every number within x.error of x rounds to; nothing where they differ.
std::optional<bool> is_rounded(const DoubleDouble& x, double rounded) {
  if (!std::isfinite(x.high)) return x.high == rounded;
  const Interval inside = testing::value_of(x.high, x.low) + Interval::around_zero(x.error);
  const auto common = precise::common_nearest(DType::f64, inside);
  if (!common) return std::nullopt;
  return *common == rounded;
}

TEST(Oracles, correctly_rounded_values_are_the_rounded_double_double_ones) {
  const precise::PrecisionScope scope(256);
  std::int64_t same = 0, unknown = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomCase c = testing::random_case(seed, {.tokens = 10, .dtype = dtype_of_seed(seed)});
    const DoubleDoubleForward exact = double_double_forward(c.input());
    const CorrectlyRounded rounded = correctly_rounded_forward(
        c.input(), {.dtype = DType::f64, .first_try = FirstTry::multiprecision});
    const auto compare_all = [&](const Tensor<DoubleDouble>& a, const Tensor<double>& b) {
      for (std::size_t i = 0; i < b.values().size(); ++i) {
        const std::optional<bool> equal = is_rounded(a.values()[i], b.values()[i]);
        if (equal) {
          ASSERT_TRUE(*equal) << seed << ": " << a.values()[i].high << ", " << b.values()[i];
        }
        ++(equal ? same : unknown);
      }
    };
    compare_all(exact.out, rounded.out);
    compare_all(exact.lse, rounded.lse);
  }
  EXPECT_GT(same, 10000);
  EXPECT_LT(unknown, same / 20);  // ties of small integers, zeros that cancel
}

TEST(Oracles, rounded_gradients_lie_within_the_errors_of_the_other_two) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RandomCase c = some_case(seed, 6);
    const DType dtype = dtype_of_seed(seed);
    const DoubleDoubleBackward exact = double_double_backward(c.input(), c.dout.view());
    const RoundedGradients rounded = rounded_backward(c.input(), c.dout.view(), dtype);
    ASSERT_EQ(disagreements(rounded.dq, rounded.dq_error, exact.dq), 0) << seed;
    ASSERT_EQ(disagreements(rounded.dk, rounded.dk_error, exact.dk), 0) << seed;
    ASSERT_EQ(disagreements(rounded.dv, rounded.dv_error, exact.dv), 0) << seed;
    for (const double value : rounded.dq.values()) ASSERT_EQ(round_to(dtype, value), value);
  }
}

/// A problem that shows what is planted: grouped heads, causal, with every modifier but the cap.
RandomCase telling_case() {
  RandomCase c;
  c.problem.shape = {.batch = 1,
                     .q_heads = 4,
                     .kv_heads = 2,
                     .q_tokens = 9,
                     .kv_tokens = 11,
                     .head_dim = 3,
                     .v_dim = 2};
  c.problem.dtype = DType::f64;
  c.problem.scale = 0.75;
  c.problem.mask = Mask({CausalMask{}}).bind(9, 11);
  c.problem.modifiers = {.alibi_slopes = {0.5, 0.25, 0.125, 0.0625},
                         .sinks = {0, 1, -1, 0.5},
                         .dropout = 0.25,
                         .dropout_seed = 5};
  std::mt19937_64 random(3);
  const auto fill = [&](const Extents& extents) {
    Tensor<double> tensor(extents);
    for (double& x : tensor.values()) x = std::normal_distribution<double>()(random);
    return tensor;
  };
  c.tensors = {fill(c.problem.shape.q()), fill(c.problem.shape.k()), fill(c.problem.shape.v())};
  return c;
}

TEST(Oracles, their_comparison_catches_mistakes_in_either) {
  const RandomCase right = telling_case();
  const ExactForward oracle = exact_forward(right.input());
  ASSERT_EQ(disagreements(oracle, double_double_forward(right.input())), 0);
  const auto caught = [&](const char* what, const auto& plant) {
    RandomCase wrong = telling_case();
    plant(wrong);
    EXPECT_GT(disagreements(oracle, double_double_forward(wrong.input())), 0) << what;
    EXPECT_GT(disagreements(exact_forward(wrong.input()), double_double_forward(right.input())), 0)
        << what;
  };
  const auto mask = [](RandomCase& c, MaskTerm term) {
    c.problem.mask = Mask({std::move(term)}).bind(9, 11);
  };
  caught("scale, in the 12th digit", [](RandomCase& c) { c.problem.scale *= 1 + 0x1p-40; });
  caught("one bit of one key", [](RandomCase& c) { c.tensors.k.values()[0] += 0x1p-46; });
  caught("the mask, one key further", [&](RandomCase& c) {
    mask(c, WindowMask{WindowMask::kUnlimited, 1});
  });
  caught("the mask, one key less", [&](RandomCase& c) {
    std::vector<std::uint8_t> bits(99);
    for (std::size_t i = 0; i < 99; ++i) bits[i] = i % 11 < i / 11 + 2;
    mask(c, BitMask{9, 11, bits, "strictly causal"});
  });
  caught("one key dropped from one row", [&](RandomCase& c) {
    std::vector<std::uint8_t> bits(99);
    for (std::size_t i = 0; i < 99; ++i) bits[i] = i % 11 <= i / 11 + 2 && i != 4 * 11 + 3;
    mask(c, BitMask{9, 11, bits, "a hole"});
  });
  caught("K/V heads exchanged", [](RandomCase& c) {
    auto& k = c.tensors.k.values();
    std::rotate(k.begin(), k.begin() + 33, k.end());
  });
  caught("slopes of the wrong heads", [](RandomCase& c) {
    std::swap(c.problem.modifiers.alibi_slopes[0], c.problem.modifiers.alibi_slopes[3]);
  });
  caught("no sink", [](RandomCase& c) { c.problem.modifiers.sinks.clear(); });
  caught("other pairs dropped", [](RandomCase& c) { ++c.problem.modifiers.dropout_seed; });
}

}  // namespace
}  // namespace ringlab
