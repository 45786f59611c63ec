// What the promises of compensated sums are made of.
#include "reference/attention/compensated.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringlab {
namespace {

/// Products of both signs with 26 significant bits at most, a different one at every place.
std::vector<double> numbers(std::int64_t count, double first) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back((first + static_cast<double>(i * i)) * (i % 3 == 0 ? -0.125 : 1.0));
  }
  return values;
}

TEST(Compensated, a_dot_product_knows_the_sum_of_its_absolute_products) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    const auto x = numbers(count, 1), y = numbers(count, 3);
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += x[i] * y[i];  // exact: eighths below 2^40
      magnitude += std::abs(x[i] * y[i]);
    }
    for (const bool exact_products : {true, false}) {
      const Dot product = dot(x.data(), y.data(), count, exact_products);
      EXPECT_EQ(product.value, sum) << count;
      EXPECT_EQ(product.magnitude, magnitude) << count;
    }
  }
}

TEST(Compensated, promises_no_less_than_its_source_allows) {
  for (const std::int64_t count : {1, 2, 8, 100, 100000}) {
    const double sum = static_cast<double>(count) * kUnitRoundoff;
    const double gamma = sum / (1 - sum);
    EXPECT_GE(compensated_rounding(count), gamma * gamma) << count;
    const Dot product{.value = 3, .magnitude = 5e10};
    EXPECT_GE(product.error(count), 3 * kUnitRoundoff + gamma * gamma * 5e10) << count;
  }
}

// f64 subjects are tried on subnormal numbers: a bound that is generous there would test nothing.
TEST(Compensated, promises_a_few_of_the_least_numbers_where_all_products_underflow) {
  EXPECT_EQ(underflow_of(0), 0);
  EXPECT_EQ(underflow_of(1), kUnderflow);
  EXPECT_EQ(underflow_of(std::int64_t{1} << 52), 0x1p-1022);
  const std::vector<double> tiny(9, 0x1p-540);
  const Dot product = dot(tiny.data(), tiny.data(), 9, false);
  EXPECT_EQ(product.value, 0);
  EXPECT_EQ(product.error(9), 36 * kUnderflow);
  BoundedSums sums(1, 9);
  for (const double x : tiny) sums.add(0x1p-540, 0, &x);
  EXPECT_EQ(sums.error(0), 18 * kUnderflow);
}

TEST(Compensated, bounded_sums_promise_for_every_term_and_every_factor) {
  BoundedSums sums(2, 3);
  const std::vector<double> first = {1, -4}, second = {2, 4}, third = {-8, 0};
  sums.add(1, 0x1p-20, first.data());
  sums.add(0.5, 0x1p-21, second.data());
  sums.add(2, 0x1p-22, third.data());
  EXPECT_EQ(sums.value(0), 1 + 1 - 16);
  EXPECT_EQ(sums.value(1), -4 + 2);
  EXPECT_GE(sums.error(0), 0x1p-20 + 2 * 0x1p-21 + 8 * 0x1p-22);
  EXPECT_GE(sums.error(1), 4 * 0x1p-20 + 4 * 0x1p-21);
  EXPECT_LE(sums.error(0), 0x1p-18 * (1 + 1e-9));  // and not much more
  sums.clear();
  EXPECT_EQ(sums.value(0), 0);
  EXPECT_EQ(sums.error(0), 0);
}

}  // namespace
}  // namespace ringlab
