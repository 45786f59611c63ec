// The parts of fast_forward: powers of two, and runs of visible keys.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "optimized/cpu/vectors.h"
#include "property_tests/oracles/quad_attention.h"
#include "reference/attention/fast_kernel.h"
#include "reference/attention/fast_rows.h"
#include "tests/reference/attention/random_case.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

using quad::Quad;

/// Dense between halves around zero and near ties, then over the whole range.
std::vector<double> some_exponents() {
  std::vector<double> x;
  for (int i = -20000; i <= 20000; ++i) x.push_back(i / 10000.0);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> anywhere(fast::kLeastPower, 1000);
  for (int i = 0; i < 40000; ++i) x.push_back(anywhere(random));
  for (double half = -1020.5; half < 1000; half += 1) {
    for (const double at : {std::nextafter(half, -2000), half, std::nextafter(half, 2000)}) {
      x.push_back(at);
    }
  }
  for (const double tiny : {0x1p-1074, 0x1p-60, 0x1p-53, -0x1p-54, -0x1p-1022}) x.push_back(tiny);
  return x;
}

TEST(PowersOfTwo, are_as_near_as_promised_on_all_vectors) {
  const std::vector<double> x = some_exponents();
  std::vector<double> power(x.size());
  for (const std::string& name : cpu::available_vectors()) {
    cpu::use_vectors(name);
    fast::powers_of_two(x.data(), static_cast<std::int64_t>(x.size()), power.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Quad exact = pow(Quad(2), Quad(x[i]));
      worst = std::max(worst, static_cast<double>(Quad(abs(Quad(power[i]) / exact - 1))));
    }
    std::printf("  %-8s worst relative error %.3f · 2^-53, promised %.0f\n", name.c_str(),
                worst * 0x1p53, fast::kPowerError * 0x1p53);
    EXPECT_LT(worst, fast::kPowerError);
    EXPECT_GT(worst, 0x1p-54);
  }
  cpu::use_vectors(cpu::available_vectors().front());
}

TEST(PowersOfTwo, are_exact_where_the_exponent_is_whole_and_zero_below_their_range) {
  for (const std::string& name : cpu::available_vectors()) {
    cpu::use_vectors(name);
    for (int n = -1021; n <= 1000; ++n) {
      const double x = n;
      double power = 0;
      fast::powers_of_two(&x, 1, &power);
      EXPECT_EQ(power, std::ldexp(1.0, n)) << name;
    }
    for (const double x : {std::nextafter(-1021.0, -2000.0), -1022.0, -1074.0, -1075.0, -1e5, -1e17,
                           -1e300, -std::numeric_limits<double>::max(), -kInfinity}) {
      const double many[9] = {x, x, x, x, x, x, x, x, x};
      double power[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
      fast::powers_of_two(many, 9, power);
      for (const double p : power) EXPECT_EQ(p, 0) << name << " " << x;
    }
  }
  cpu::use_vectors(cpu::available_vectors().front());
}

TEST(RowVisibility, says_what_the_predicate_says_of_every_pair) {
  std::int64_t seen = 0, hidden = 0, with_holes = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 20, .dim = 1});
    const Shape& shape = c.problem.shape;
    std::vector<std::int64_t> rows;
    const std::int64_t step = 1 + static_cast<std::int64_t>(seed % 3);
    for (std::int64_t i = 0; i < shape.q_tokens; i += step) rows.push_back(i);
    const RowVisibility visible(c.problem.mask, rows, shape.q_tokens, shape.kv_tokens);
    const Visibility predicate(c.problem.mask, shape.q_tokens, shape.kv_tokens);
    with_holes += visible.has_holes();
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      bool any = false;
      for (std::size_t slot = 0; slot < rows.size(); ++slot) {
        const KeyInterval run = visible.run(static_cast<std::int64_t>(slot));
        const bool inside = run.begin <= j && j < run.end;
        const bool expected = predicate(rows[slot], j);
        any = any || expected;
        ++(expected ? seen : hidden);
        ASSERT_TRUE(inside || !expected) << seed;
        if (!visible.has_holes()) {
          ASSERT_EQ(inside, expected) << seed;
        }
        ASSERT_EQ(visible.sees(static_cast<std::int64_t>(slot), j), expected);
        // Runs are tight: their ends are seen.
        if (run.size() > 0 && (j == run.begin || j == run.end - 1)) {
          ASSERT_TRUE(expected) << seed;
        }
      }
      ASSERT_EQ(visible.seen_by_any(j), any) << seed;
    }
  }
  EXPECT_GT(seen, 1000);
  EXPECT_GT(hidden, 1000);
  EXPECT_GT(with_holes, 1000);
}

}  // namespace
}  // namespace ringlab
