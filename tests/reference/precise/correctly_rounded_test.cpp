// Correct rounding where it is hard: ties, near ties, zeros, overflow, and what has no answer.
#include "reference/precise/correctly_rounded.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "property_tests/oracles/quad_attention.h"
#include "reference/core/error.h"
#include "reference/precise/rounding.h"
#include "reference/precise/seen.h"
#include "tests/reference/attention/random_case.h"
#include "tests/reference/attention/random_modifiers.h"
#include "tests/reference/precise/small_problem.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

using testing::KeyValue;
using testing::RandomCase;
using testing::SmallProblem;

struct One {
  double out = 0, lse = 0;
  RoundingEffort effort;
};
One rounded(const SmallProblem& small, DType dtype) {
  const CorrectlyRounded result = correctly_rounded_forward(small.input(), {.dtype = dtype});
  const CorrectlyRounded slowly = correctly_rounded_forward(
      small.input(), {.dtype = dtype, .first_try = FirstTry::multiprecision});
  EXPECT_EQ(result.out(0, 0, 0, 0), slowly.out(0, 0, 0, 0));
  EXPECT_EQ(result.lse(0, 0, 0, 0), slowly.lse(0, 0, 0, 0));
  EXPECT_LE(slowly.effort.most_bits, kMostBits);
  return {slowly.out(0, 0, 0, 0), slowly.lse(0, 0, 0, 0), slowly.effort};
}
One rounded(const std::vector<KeyValue>& keys, DType dtype) {
  return rounded(SmallProblem(keys), dtype);
}

/// The distance of numbers of the dtype around 1.
double ulp_of_one(DType dtype) { return 2 * dtype_info(dtype).unit_roundoff; }

constexpr DType kNarrow[] = {DType::f32, DType::f16, DType::bf16};
constexpr DType kAll[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST(CorrectlyRounded, the_mean_of_two_neighbours_goes_to_the_even_one) {
  for (const DType dtype : kAll) {
    const double ulp = ulp_of_one(dtype);
    EXPECT_EQ(rounded({{0, 1}, {0, 1 + ulp}}, dtype).out, 1);
    EXPECT_EQ(rounded({{0, 1 + ulp}, {0, 1 + 2 * ulp}}, dtype).out, 1 + 2 * ulp);
    EXPECT_EQ(rounded({{0, -1}, {0, -1 - ulp}}, dtype).out, -1);
    const double least = dtype_info(dtype).min_subnormal;
    EXPECT_EQ(rounded({{3, 0}, {3, least}}, dtype).out, 0);
    EXPECT_EQ(rounded({{3, least}, {3, 2 * least}}, dtype).out, 2 * least);
  }
}

TEST(CorrectlyRounded, a_tie_in_every_group_of_scores_is_a_tie) {
  // Irrational weights, and still exactly halfway: A_k = r B_k for each of three scores.
  for (const DType dtype : kAll) {
    const double ulp = ulp_of_one(dtype);
    const One one =
        rounded({{0.25, 1}, {0.25, 1 + ulp}, {-1, 1}, {-1, 1 + ulp}, {2, 1 + ulp}, {2, 1}}, dtype);
    EXPECT_EQ(one.out, 1);
    EXPECT_EQ(one.effort.ties, 1);
    // With only two of the three halfway it is not one, and the third decides.
    const One up = rounded({{0.25, 1}, {0.25, 1 + ulp}, {-70, 1 + ulp}}, dtype);
    EXPECT_EQ(up.out, 1 + ulp);
    EXPECT_EQ(up.effort.ties, 0);
  }
}

TEST(CorrectlyRounded, near_ties_fall_to_the_right_side_however_near) {
  // e^-140 is about 2^-202; e^-1e30 is below every exponent there is.
  for (const double depth : {-140.0, -1e3, -1e5, -1e30, -1e300}) {
    for (const DType dtype : kAll) {
      const double ulp = ulp_of_one(dtype);
      const One up = rounded({{0, 1}, {0, 1 + ulp}, {depth, 1 + ulp}}, dtype);
      const One down = rounded({{0, 1 + ulp}, {0, 1 + 2 * ulp}, {depth, 1}}, dtype);
      EXPECT_EQ(up.out, 1 + ulp) << depth;
      EXPECT_EQ(down.out, 1 + ulp) << depth;
      EXPECT_GE(up.effort.by_sign, 1);
      EXPECT_LE(up.effort.most_sign_bits, 128) << "the far key is scaled out, not resolved";
    }
  }
}

TEST(CorrectlyRounded, near_ties_by_nearly_equal_scores_take_the_bits_they_need) {
  // Weights 1 and e^h: out = 1 + ulp/2 + ulp h/4 …, off the midpoint by 2^-202 ulp.
  for (const double h : {0x1p-200, -0x1p-200, 0x1p-1000}) {
    const double ulp = ulp_of_one(DType::f32);
    const One one = rounded({{0, 1}, {h, 1 + ulp}}, DType::f32);
    EXPECT_EQ(one.out, h > 0 ? 1 + ulp : 1) << h;
    EXPECT_GT(one.effort.most_sign_bits, std::abs(std::ilogb(h)));
    EXPECT_LE(one.effort.most_sign_bits, 4 * std::abs(std::ilogb(h)));
  }
}

TEST(CorrectlyRounded, one_visible_key_gives_its_value_and_its_score) {
  for (const DType dtype : kAll) {
    const One one = rounded({{-3.5, 0.1}}, dtype);
    EXPECT_EQ(one.out, round_to(dtype, 0.1));
    EXPECT_EQ(one.lse, -3.5);
  }
  // The score halfway between two f32, and a second key that nothing but its sign is left of.
  EXPECT_EQ(rounded({{1 + 0x1p-24, 2}}, DType::f32).lse, 1);
  EXPECT_EQ(rounded({{1 + 0x1p-24, 2}, {-1e30, 2}}, DType::f32).lse, 1 + 0x1p-23);
  EXPECT_EQ(rounded({{1 + 0x3p-24, 2}}, DType::f32).lse, 1 + 0x1p-22);
}

TEST(CorrectlyRounded, zeros_keep_the_sign_of_what_they_were) {
  const auto sign_of_zero = [](const std::vector<KeyValue>& keys) {
    const double out = rounded(keys, DType::f32).out;
    EXPECT_EQ(out, 0);
    return std::signbit(out) ? -1 : 1;
  };
  EXPECT_EQ(sign_of_zero({{0.3, 1}, {0.3, -1}, {7, -2}, {7, 2}}), 1) << "exactly zero";
  EXPECT_EQ(sign_of_zero({{0, -1e-300}}), -1);
  EXPECT_EQ(sign_of_zero({{0, 1e-300}}), 1);
  EXPECT_EQ(sign_of_zero({{0, 1}, {0, -1}, {-1e30, -5}}), -1) << "zero but for a far key";
  EXPECT_EQ(sign_of_zero({{0, 0}, {-1e30, 5}}), 1);
  EXPECT_EQ(sign_of_zero({{0, -0.0}}), 1);
}

TEST(CorrectlyRounded, beyond_the_largest_number_is_infinity_as_ieee_has_it) {
  EXPECT_EQ(rounded({{0, 65519.999}}, DType::f16).out, 65504);
  EXPECT_EQ(rounded({{0, 65520}}, DType::f16).out, kInfinity);  // a tie: the even neighbour
  EXPECT_EQ(rounded({{0, 65520}, {1, 65520}}, DType::f16).out, kInfinity);
  EXPECT_EQ(rounded({{0, -65520}, {1, -65520}}, DType::f16).out, -kInfinity);
  EXPECT_EQ(rounded({{0, 65520}, {-200, 1}}, DType::f16).out, 65504);
  EXPECT_EQ(rounded({{1e300, 1}}, DType::f32).lse, kInfinity);
  EXPECT_EQ(rounded({{-1e300, 1}}, DType::f64).lse, -1e300);
}

TEST(CorrectlyRounded, products_beyond_the_range_of_doubles_are_no_obstacle) {
  SmallProblem small({{1e300, 3}, {1.5e300, 5}});
  small.tensors.q.values()[0] = 1e300;
  const One one = rounded(small, DType::f64);
  EXPECT_EQ(one.out, 5);
  EXPECT_EQ(one.lse, kInfinity);
  SmallProblem tiny({{0x1p-1074, 3}, {0x1p-1074, 5}});
  tiny.tensors.q.values()[0] = 0x1p-1074;
  EXPECT_EQ(rounded(tiny, DType::f64).out, 4);
  EXPECT_EQ(rounded(tiny, DType::f64).lse, std::log(2.0));
}

TEST(CorrectlyRounded, cancelling_values_of_all_sizes_end_within_the_bound) {
  const std::vector<KeyValue> keys = {{1, 1e308},      {1, -1e308},    {0.5, 1e-300},
                                      {-2, 0x1p-1074}, {0.5, -1e-300}, {1, 0x1p-1074},
                                      {0, 1e200},      {0, -1e200}};
  // Only two smallest numbers are left, with less than all of the weight: below half of one.
  const One one = rounded(keys, DType::f64);
  EXPECT_EQ(one.out, 0);
  EXPECT_FALSE(std::signbit(one.out));
  // Weights that agree in 900 bits, and values that cancel: -1e308 tanh(2^-901).
  const One deep = rounded({{0, 1e308}, {0x1p-900, -1e308}}, DType::f64);
  EXPECT_EQ(deep.out, -1e308 * 0x1p-901);
  EXPECT_GT(deep.effort.most_bits, 900);
  const One other = rounded({{0, 1e308}, {0, -1e308}, {0, 3e-300}}, DType::f64);
  EXPECT_EQ(other.out, 1e-300);
}

TEST(CorrectlyRounded, dropout_and_sinks_are_part_of_the_tie_test) {
  // Kept pairs are doubled; the sink takes as much weight as one key.
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const double ulp = ulp_of_one(DType::bf16);
    SmallProblem small({{1, 1}, {1, 1 + ulp}, {1, 3}});
    small.problem.modifiers = {.sinks = {1}, .dropout = 0.5, .dropout_seed = seed};
    double kept = 0;
    for (std::int64_t j = 0; j < 3; ++j) {
      if (precise::is_kept(small.problem, {}, j))
        kept += small.tensors.v.values()[static_cast<std::size_t>(j)];
    }
    EXPECT_EQ(rounded(small, DType::bf16).out, round_to(DType::bf16, kept / 4 * 2)) << seed;
    EXPECT_EQ(rounded(small, DType::f64).lse, 1 + std::log(4.0)) << seed;
  }
}

/// Nothing on the grid is nearer to `truth` than `value`, as far as 113 bits can tell.
void expect_nearest(DType dtype, double value, const quad::Quad& truth) {
  const quad::Quad off = abs(quad::Quad(value) - truth);
  const quad::Quad slack = abs(truth) * 0x1p-90 + 1e-30;
  for (const double other : {precise::next_up(dtype, value), -precise::next_up(dtype, -value)}) {
    if (std::isinf(other)) continue;
    ASSERT_LE(off, abs(quad::Quad(other) - truth) + slack) << value << ", " << other;
  }
}

TEST(CorrectlyRounded, is_the_nearest_number_on_random_problems_of_every_kind) {
  RoundingEffort effort;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const DType dtype = kAll[seed % 4];
    RandomCase c = seed % 3 == 0 ? testing::modified_case(seed, {.tokens = 9, .dtype = dtype})
                                 : testing::random_case(seed, {.tokens = 9, .dtype = dtype});
    c.problem.modifiers.softcap = 0;
    const auto truth = quad::forward<quad::Quad>(c.input());
    const CorrectlyRounded quick = correctly_rounded_forward(c.input(), {.dtype = dtype});
    const CorrectlyRounded slow = correctly_rounded_forward(
        c.input(), {.dtype = dtype, .first_try = FirstTry::multiprecision});
    ASSERT_EQ(quick.out.values(), slow.out.values()) << seed;
    ASSERT_EQ(quick.lse.values(), slow.lse.values()) << seed;
    for (std::size_t i = 0; i < truth.out.size(); ++i) {
      expect_nearest(dtype, quick.out.values()[i], truth.out[i]);
    }
    for (std::size_t i = 0; i < truth.lse.size(); ++i) {
      if (truth.empty[i]) {
        ASSERT_EQ(quick.lse.values()[i], -kInfinity) << seed;
      } else {
        expect_nearest(dtype == DType::f64 ? dtype : DType::f32, quick.lse.values()[i],
                       truth.lse[i]);
      }
    }
    effort.add(slow.effort);
  }
  EXPECT_GT(effort.elements, 10000);
  EXPECT_GT(effort.by_sign, 0);
  EXPECT_LE(effort.most_bits, 2048);  // values that cancel down to the smallest numbers of f64
}

TEST(CorrectlyRounded, rows_and_threads_change_no_bit_and_progress_is_told) {
  const RandomCase c = testing::random_case(11, {.tokens = 12});
  const CorrectlyRounded all = correctly_rounded_forward(c.input(), {.dtype = DType::f32});
  const Shape& shape = c.problem.shape;
  ASSERT_GE(shape.q_tokens, 4);
  std::int64_t told = 0, rows_in_all = 0;
  const CorrectlyRounded some = correctly_rounded_forward(
      c.input(), {.dtype = DType::f32,
                  .work = {.rows = {1, 3}, .threads = 3, .progress = [&](auto done, auto rows) {
                             EXPECT_EQ(done, told + 1);
                             told = done;
                             rows_in_all = rows;
                           }}});
  EXPECT_EQ(told, 2 * shape.batch * shape.q_heads);
  EXPECT_EQ(rows_in_all, told);
  for_each_index(some.out.extents(), [&](auto b, auto h, auto t, auto channel) {
    EXPECT_EQ(some.out(b, h, t, channel), all.out(b, h, 2 * t + 1, channel));
  });
}

TEST(CorrectlyRounded, a_row_that_sees_nothing_is_zero_with_the_sink_or_minus_infinity) {
  SmallProblem small({{1, 2}});
  small.problem.mask = Mask({DocumentsMask{{0, 1}}, WindowMask{0, 0}, PrefixMask{0}}).bind(1, 1);
  ASSERT_EQ(precise::seen_keys(small.problem, 0).size(), 1u);
  const std::vector<std::uint8_t> none = {0};
  small.problem.mask = Mask({BitMask{1, 1, none, "none"}}).bind(1, 1);
  EXPECT_EQ(rounded(small, DType::f32).out, 0);
  EXPECT_EQ(rounded(small, DType::f32).lse, -kInfinity);
  small.problem.modifiers.sinks = {0.1};
  EXPECT_EQ(rounded(small, DType::f32).lse, round_to(DType::f32, 0.1));
  EXPECT_EQ(double_double_forward(small.input()).lse(0, 0, 0, 0).high, 0.1);
}

TEST(CorrectlyRounded, infinities_and_nan_are_refused_where_seen_and_ignored_where_hidden) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    for (const bool in_key : {false, true}) {
      SmallProblem small({{1, 2}, {3, 4}});
      (in_key ? small.tensors.k : small.tensors.v).values()[1] = bad;
      EXPECT_THROW(correctly_rounded_forward(small.input(), {}), Error);
      EXPECT_THROW(double_double_forward(small.input()), Error);
      const std::vector<std::uint8_t> bits = {1, 0};
      small.problem.mask = Mask({BitMask{1, 2, bits, "first"}}).bind(1, 2);
      EXPECT_EQ(rounded(small, DType::f32).out, 2);
      EXPECT_EQ(double_double_forward(small.input()).out(0, 0, 0, 0).high, 2);
    }
    SmallProblem small({{1, 2}});
    small.tensors.q.values()[0] = bad;
    EXPECT_THROW(correctly_rounded_forward(small.input(), {}), Error);
  }
}

TEST(CorrectlyRounded, says_what_it_cannot_round) {
  SmallProblem small({{1, 2}});
  const auto message = [&](const RoundingOptions& options) -> std::string {
    try {
      correctly_rounded_forward(small.input(), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({.dtype = DType::fp8_e4m3}), "");
  EXPECT_NE(message({.work = {.rows = {0, 0}}}).find("ascending"), std::string::npos);
  EXPECT_NE(message({.work = {.rows = {1}}}).find("ascending"), std::string::npos);
  small.problem.modifiers.softcap = 30;
  EXPECT_NE(message({}).find("soft-capping"), std::string::npos);
}

}  // namespace
}  // namespace ringlab
