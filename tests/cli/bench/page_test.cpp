// The page of goals: what it counts, and that nothing in a name breaks it.
#include "cli/bench/measure/page.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

namespace ringlab::bench {
namespace {

std::ptrdiff_t count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression),
                       std::sregex_iterator());
}

BenchReport report() {
  BenchReport report{
      .configuration = {{"vectors", "<avx>"}}, .build = "0 & 1", .outcomes = {}, .roofline = {}};
  const auto add = [&](const std::string& id, std::optional<Spread> value) {
    report.outcomes.push_back(
        {.goal = {.id = id, .what = "what <of>", .unit = "share", .bound = 0.9, .target = 0.95},
         .value = value});
  };
  add("C1.full", Spread{0.96, 0.95, 0.97});
  add("C1.causal", Spread{0.92, 0.91, 0.93});
  add("C2.full", Spread{0.1, 0.1, 0.1});
  add("C3", std::nullopt);
  report.outcomes.back().reason = "no <library>";
  report.roofline = {.ceilings = {{"f32", 1e11}},
                     .slopes = {{"memory", 1 << 20, 1e10}},
                     .points = {{"d=64", 24, {5e10, 4e10, 6e10}}}};
  return report;
}

TEST(BenchPage, counts_what_was_reached_missed_and_skipped) {
  const std::string page = bench_page(report());
  EXPECT_EQ(count(page, "1 at target, 1 at what is asked for at least, 1 missed, 1 skipped"), 1);
  EXPECT_EQ(count(page, "skipped: no &lt;library&gt;"), 1);
  EXPECT_EQ(count(page, "verdict bad"), 1);
}

TEST(BenchPage, texts_are_escaped_and_nothing_is_loaded_from_outside) {
  const std::string page = bench_page(report());
  EXPECT_EQ(count(page, "<avx>|<of>|<library>"), 0);
  EXPECT_EQ(count(page, "https?:|src=|<script"), 0);
}

TEST(BenchPage, one_bar_for_each_value_and_one_point_for_each_measurement) {
  const std::string page = bench_page(report());
  EXPECT_EQ(count(page, "<rect [^>]*class=\"bar "), 3);
  EXPECT_EQ(count(page, "<rect [^>]*class=\"point"), 1);
}

TEST(BenchPage, an_empty_run_makes_a_page_too) {
  BenchReport empty{.configuration = {}, .build = "", .outcomes = {}, .roofline = {}};
  const std::string page = bench_page(empty);
  EXPECT_EQ(count(page, "nan|inf[^o]"), 0);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(GoalBars, values_beyond_the_axis_and_not_finite_stay_in_the_picture) {
  std::vector<GoalOutcome> outcomes = report().outcomes;
  outcomes[0].value = Spread{1e9, 0, std::numeric_limits<double>::infinity()};
  outcomes[1].value = Spread{-1, -2, std::numeric_limits<double>::quiet_NaN()};
  const std::string picture = goal_bars(outcomes, "bars");
  const std::regex number("(x|x1|x2|width)=\"([^\"]*)\"");
  for (std::sregex_iterator it(picture.begin(), picture.end(), number), end; it != end; ++it) {
    const double value = std::stod((*it)[2]);
    EXPECT_TRUE(value >= 0 && value <= 360) << it->str();
  }
}

TEST(RooflinePicture, lines_and_points_stay_in_the_picture) {
  Roofline roofline = *report().roofline;
  roofline.slopes.push_back({"L1 cache", 1 << 14, 1e12});
  roofline.points.push_back({"far left", 1e-4, {1e6, 1e6, 1e6}});
  roofline.points.push_back({"far right", 1e6, {2e11, 2e11, 2e11}});
  const std::string picture = roofline_picture(roofline);
  const std::regex number("(x1|x2)=\"([^\"]*)\"");
  for (std::sregex_iterator it(picture.begin(), picture.end(), number), end; it != end; ++it) {
    const double value = std::stod((*it)[2]);
    EXPECT_TRUE(value >= 0 && value <= 720) << it->str();
  }
  EXPECT_EQ(count(picture, "nan|inf"), 0);
}

}  // namespace
}  // namespace ringlab::bench
