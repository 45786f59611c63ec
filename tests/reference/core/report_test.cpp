#include "reference/core/report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "reference/core/error.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

TensorReport compare_values(const std::vector<double>& got, const std::vector<double>& exact,
                            const std::vector<double>& allowed) {
  const Extents extents = {1, 1, static_cast<std::int64_t>(got.size()), 1};
  return compare("o", dense_view(got.data(), extents), dense_view(exact.data(), extents),
                 dense_view(allowed.data(), extents));
}

TensorReport compare_one(double got, double exact, double allowed) {
  return compare_values({got}, {exact}, {allowed});
}

TEST(CompareTest, an_error_up_to_the_allowed_one_passes) {
  EXPECT_TRUE(compare_one(1.5, 1.0, 0.5).passed());
  EXPECT_TRUE(compare_one(0.5, 1.0, 0.5).passed());
  EXPECT_EQ(compare_one(0.75, 1.0, 0.5).worst.ratio, 0.5);
  EXPECT_FALSE(compare_one(std::nextafter(1.5, 2.0), 1.0, 0.5).passed());
  EXPECT_GT(compare_one(std::nextafter(1.5, 2.0), 1.0, 0.5).worst.ratio, 1.0);
}

TEST(CompareTest, nan_never_passes) {
  for (const double allowed : {0.0, 1.0, kInfinity, kNaN}) {
    for (const double other : {0.0, 1.0, -kInfinity, kInfinity, kNaN}) {
      EXPECT_FALSE(compare_one(kNaN, other, allowed).passed());
      EXPECT_FALSE(compare_one(other, kNaN, allowed).passed());
      EXPECT_EQ(compare_one(kNaN, other, allowed).worst.ratio, kInfinity);
    }
  }
}

TEST(CompareTest, infinities_equal_themselves_and_nothing_else) {
  for (const double allowed : {0.0, 1.0, kInfinity}) {
    for (const double infinity : {kInfinity, -kInfinity}) {
      EXPECT_TRUE(compare_one(infinity, infinity, allowed).passed());
      EXPECT_EQ(compare_one(infinity, infinity, allowed).worst.ratio, 0.0);
      for (const double other : {-infinity, 0.0, 1e308, -1e308}) {
        // A number beyond the range of its type may come out infinite where anything is allowed.
        const bool is_beyond = std::isinf(allowed) && std::isfinite(other);
        EXPECT_EQ(compare_one(infinity, other, allowed).passed(), is_beyond);
        EXPECT_FALSE(compare_one(other, infinity, allowed).passed());
        EXPECT_EQ(compare_one(other, infinity, allowed).worst.ratio, kInfinity);
      }
    }
  }
}

TEST(CompareTest, where_nothing_is_allowed_only_the_exact_value_passes) {
  EXPECT_TRUE(compare_one(0.1, 0.1, 0.0).passed());
  EXPECT_EQ(compare_one(0.1, 0.1, 0.0).worst.ratio, 0.0);
  EXPECT_TRUE(compare_one(-0.0, 0.0, 0.0).passed());
  EXPECT_FALSE(compare_one(0x1p-1074, 0.0, 0.0).passed());
  EXPECT_EQ(compare_one(0x1p-1074, 0.0, 0.0).worst.ratio, kInfinity);
}

TEST(CompareTest, an_allowance_of_nan_or_below_zero_passes_nothing) {
  for (const double allowed : {kNaN, -1.0, -kInfinity}) {
    for (const double value : {1.0, kInfinity}) {
      EXPECT_FALSE(compare_one(value, value, allowed).passed());
      EXPECT_EQ(compare_one(value, value, allowed).worst.ratio, kInfinity);
    }
  }
}

TEST(CompareTest, an_infinite_allowance_passes_every_finite_value) {
  EXPECT_TRUE(compare_one(5.0, 1.0, kInfinity).passed());
  EXPECT_TRUE(compare_one(1e308, -1e308, kInfinity).passed());
  EXPECT_EQ(compare_one(1e308, -1e308, kInfinity).worst.ratio, 0.0);
  EXPECT_FALSE(compare_one(1e308, -1e308, 1e308).passed());
}

TEST(CompareTest, elements_whose_bounds_are_as_wide_as_the_answer_are_counted) {
  const TensorReport report = compare_values({1, 9, 9, 2, kNaN, 0.5}, {1, 1, 1, 1, 1, 0.5},
                                             {kInfinity, kInfinity, 1, 0.5, kInfinity, 0.75});
  EXPECT_EQ(report.unbounded, 4);  // 0.75 is more than that element is, and less than others are
  EXPECT_EQ(report.measured, 6);
  EXPECT_EQ(report.telling, 1);
  EXPECT_EQ(report.failed, 3);
  EXPECT_FALSE(report.is_open());
}

TEST(CompareTest, where_zeros_would_pass_as_well_a_tensor_passes_and_does_not_hold) {
  const auto report_of = [](const std::vector<double>& exact, const std::vector<double>& allowed) {
    return Report{{compare_values(exact, exact, allowed)}};
  };
  for (const double bound : {2.0, 1e30, kInfinity}) {
    const Report open = report_of({1, -2}, {bound, bound});
    EXPECT_TRUE(open.passed());
    EXPECT_FALSE(open.held()) << bound;
    EXPECT_EQ(open.unbounded(), 2);
  }
  EXPECT_TRUE(report_of({1, -2}, {2, 1.9}).held());
  EXPECT_TRUE(report_of({0, -0.0}, {1e-7, 1e-7}).held());  // zeros are the answer
  EXPECT_FALSE(report_of({0, 0}, {1e-7, kInfinity}).held());
  EXPECT_TRUE(report_of({0, -kInfinity}, {0, 0}).held());  // a row that sees nothing
  EXPECT_FALSE(report_of({-kInfinity, 1}, {0, 3}).held());
}

TEST(CompareTest, where_the_answer_vanishes_the_size_of_a_wrong_one_counts) {
  const Tensor<double> tiny({1, 1, 1, 2}, 1e-30), allowed({1, 1, 1, 2}, 1e-6);
  const auto is_open = [&](double size) {
    return compare("dq", tiny.view(), tiny.view(), allowed.view(), size).is_open();
  };
  EXPECT_TRUE(is_open(0));
  EXPECT_TRUE(is_open(1e-6));
  EXPECT_FALSE(is_open(1e-3));
}

TEST(CompareTest, the_worst_element_is_found_with_its_address) {
  const Extents extents = {2, 3, 4, 5};
  Tensor<double> got(extents), exact(extents), allowed(extents, 1.0);
  got(1, 2, 3, 4) = 0.5;
  got(1, 0, 2, 1) = 8.0;
  allowed(1, 0, 2, 1) = 10.0;
  got(0, 1, 1, 3) = -0.75;
  const TensorReport report = compare("dq", std::as_const(got).view(), std::as_const(exact).view(),
                                      std::as_const(allowed).view());
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.compared, 120);
  EXPECT_EQ(report.tensor, "dq");
  EXPECT_EQ(report.worst.ratio, 0.8);
  EXPECT_EQ(report.worst.batch, 1);
  EXPECT_EQ(report.worst.head, 0);
  EXPECT_EQ(report.worst.token, 2);
  EXPECT_EQ(report.worst.channel, 1);
  EXPECT_EQ(report.worst.got, 8.0);
  EXPECT_EQ(report.worst.allowed, 10.0);
}

TEST(CompareTest, views_of_any_strides_are_compared_by_address) {
  const std::vector<double> got = {0, 1, 2, 3, 4, 5};
  const std::vector<double> exact = {0, 2, 4, 1, 3, 5};  // the same, transposed
  const std::vector<double> allowed = {0.0};
  const Extents extents = {1, 1, 3, 2};
  const auto report =
      compare("o", {got.data(), extents, {6, 6, 2, 1}}, {exact.data(), extents, {6, 6, 1, 3}},
              {allowed.data(), extents, {0, 0, 0, 0}});
  EXPECT_TRUE(report.passed()) << report.worst.token;
  EXPECT_EQ(report.compared, 6);
}

TEST(CompareTest, other_shapes_are_input_errors_that_name_the_tensor) {
  const Tensor<double> small({1, 1, 2, 2}), large({1, 1, 2, 3});
  try {
    compare("dk", small.view(), large.view(), large.view());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_STREQ(error.what(), "comparison of dk: expected (1, 1, 2, 3), found (1, 1, 2, 2)");
  }
  EXPECT_THROW(compare("dk", large.view(), large.view(), small.view()), Error);
}

double draw_special() {
  return *rc::gen::element(0.0, -0.0, 1.0, -1.0, 0x1p-1074, 1e308, -1e308, kInfinity, -kInfinity,
                           kNaN);
}

RC_GTEST_PROP(CompareTest, an_element_fails_exactly_when_its_ratio_is_above_one, ()) {
  const double got = draw_special();
  const double exact = draw_special();
  const double allowed = draw_special();
  const TensorReport report = compare_one(got, exact, allowed);
  RC_ASSERT(!std::isnan(report.worst.ratio));
  RC_ASSERT(report.worst.ratio >= 0);
  RC_ASSERT(report.passed() == (report.worst.ratio <= 1.0));
}

RC_GTEST_PROP(CompareTest, one_bad_element_among_any_others_fails_the_tensor,
              (std::vector<double> values)) {
  const std::vector<double> allowed(values.size() + 1, 0.5);
  const auto at = *rc::gen::inRange<std::size_t>(0, values.size() + 1);
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), 1.0);
  std::vector<double> got = values;
  got[at] = *rc::gen::element(kNaN, kInfinity, 1.6, 0.4, -1.0);
  const TensorReport report = compare_values(got, values, allowed);
  RC_ASSERT(report.failed == 1);
  RC_ASSERT(report.worst.token == static_cast<std::int64_t>(at));
}

TEST(ReportTest, passes_when_every_tensor_passes) {
  Report report;
  report.tensors = {compare_one(1, 1, 0), compare_one(2, 1, 4)};
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.worst_ratio(), 0.25);
  report.tensors.push_back(compare_one(1, 0, 0.5));
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.worst_ratio(), 2.0);
}

TEST(ReportTest, an_absent_comparison_has_not_passed) {
  EXPECT_FALSE(Report().passed());
  EXPECT_EQ(Report().worst_ratio(), 0.0);
  EXPECT_EQ(Report().summary(), "nothing was compared");
}

TEST(ReportTest, tensors_without_elements_pass) {
  const Report report = {{compare_values({}, {}, {})}};
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.worst_ratio(), 0.0);
  EXPECT_EQ(report.summary(), "o: no elements");
}

TEST(ReportTest, the_summary_tells_the_worst_element_on_one_line) {
  const Report report = {{compare_one(1, 1, 1), compare_values({0, 1.5}, {0, 1}, {1, 0.375})}};
  EXPECT_EQ(report.summary(),
            "o(0, 0, 1, 0): got 1.5, exact 1, allowed 0.375, ratio 1.33 (1 of 2 elements fail)");
  const Report nan = {{compare_one(kNaN, -kInfinity, 1e-300)}};
  EXPECT_EQ(nan.summary(),
            "o(0, 0, 0, 0): got nan, exact -inf, allowed 1e-300, ratio inf (1 of 1 elements fail)");
}

}  // namespace
}  // namespace ringlab
