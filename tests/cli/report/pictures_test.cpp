// The pictures of the report: what they count, and that nothing in a name or number breaks them.
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "cli/report/bars.h"
#include "cli/report/html.h"
#include "cli/report/maps.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

std::ptrdiff_t count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression),
                       std::sregex_iterator());
}

Mask causal(std::int64_t tokens) { return Mask({CausalMask{}}).bind(tokens, tokens); }

RingWork causal_work(LayoutKind kind, std::int64_t tokens, int ranks) {
  const Layout layout(kind, tokens, ranks);
  return ring_work(causal(tokens), layout, layout, RingDirection::next);
}

TEST(Svg, escapes_markup_and_drops_control_characters) {
  EXPECT_EQ(escape("a<b>&\"'\x01\x7f"), "a&lt;b&gt;&amp;&quot;&#39;\x7f");
}

TEST(Svg, titles_and_texts_are_escaped) {
  Svg svg(10, 10, "<&>");
  svg.rect({0, 0, 1, 1}, "idle", "", "</title>");
  svg.text(0, 0, "</text>");
  const std::string text = svg.finish();
  EXPECT_EQ(count(text, "</title>"), 1);
  EXPECT_EQ(count(text, "</text>"), 1);
  EXPECT_NE(text.find("aria-label=\"&lt;&amp;&gt;\""), std::string::npos);
}

TEST(RingWork, every_visible_pair_is_counted_once) {
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::int64_t pairs = 0;
      for (const auto& row : causal_work(kind, 23, ranks).pairs) {
        for (const std::int64_t hop : row) pairs += hop;
      }
      EXPECT_EQ(pairs, 23 * 24 / 2) << ranks;
    }
  }
}

TEST(RingWork, contiguous_causal_work_leaves_half_of_the_ring_idle) {
  for (const int ranks : {1, 2, 4, 8}) {
    const double chunk = 16, all = chunk * ranks;
    EXPECT_DOUBLE_EQ(causal_work(LayoutKind::contiguous, 16 * ranks, ranks).busy_fraction(),
                     (all + 1) / (2 * all - chunk + 1));
  }
}

TEST(RingWork, zigzag_causal_work_is_balanced_exactly) {
  for (const int ranks : {1, 2, 3, 8}) {
    EXPECT_EQ(causal_work(LayoutKind::zigzag, 12 * ranks, ranks).busy_fraction(), 1.0);
  }
}

TEST(RingWork, striped_causal_work_is_nearly_balanced) {
  for (const int ranks : {2, 3, 8}) {
    const double chunk = 10;
    EXPECT_DOUBLE_EQ(causal_work(LayoutKind::striped, 10 * ranks, ranks).busy_fraction(),
                     (ranks * chunk + 1) / (ranks * (chunk + 1)));
  }
}

TEST(RingWork, the_direction_decides_whose_keys_are_met_first) {
  const Layout layout(LayoutKind::contiguous, 4, 4);
  const auto next = ring_work(causal(4), layout, layout, RingDirection::next);
  const auto previous = ring_work(causal(4), layout, layout, RingDirection::previous);
  EXPECT_EQ(next.pairs[1], (std::vector<std::int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(previous.pairs[1], (std::vector<std::int64_t>{1, 0, 0, 1}));
}

TEST(RingWork, no_work_counts_as_busy) {
  EXPECT_EQ(RingWork{}.busy_fraction(), 1);
  EXPECT_EQ(causal_work(LayoutKind::striped, 0, 3).busy_fraction(), 1);
}

TEST(LayoutMap, has_one_frame_per_block_and_colours_only_visible_ones) {
  const Layout layout(LayoutKind::contiguous, 8, 4);
  const std::string svg = layout_map(causal(8), layout, layout, RingDirection::next);
  EXPECT_EQ(count(svg, "class=\"frame\""), 16);
  EXPECT_EQ(count(svg, ": empty</title>"), 6);
  EXPECT_EQ(count(svg, ": full</title>"), 6);
  EXPECT_EQ(count(svg, ": partial, 75 % visible</title>"), 4);
}

TEST(LayoutMap, more_ranks_than_tokens_is_drawn) {
  const Layout layout(LayoutKind::zigzag, 2, 5);
  const std::string svg = layout_map(causal(2), layout, layout, RingDirection::next);
  EXPECT_EQ(count(svg, "class=\"frame\""), 25);
  EXPECT_EQ(count(svg, "nan|inf"), 0);
}

TEST(BarChart, numbers_that_are_not_finite_reach_the_edge_and_stay_out_of_the_coordinates) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string svg = bar_chart(
      {"x",
       {{"r", {{nan, "a", "bad", ""}, {infinity, "b", "bad", ""}, {0.5, "c", "first", ""}}}},
       {{1, "bound"}},
       0});
  EXPECT_EQ(count(svg, "=\"-?(nan|inf)"), 0);
  EXPECT_EQ(count(svg, "class=\"bar bad\""), 2);
}

TEST(BarChart, an_empty_chart_is_a_picture_too) {
  EXPECT_EQ(count(bar_chart({"x", {}, {}, 0}), "<svg "), 1);
}

TEST(CaseMap, shows_every_pair_and_which_are_visible) {
  verify::Case shown;
  shown.shape = {1, 1, 1, 3, 3, 2, 2};
  shown.mask = "causal";
  shown.ranks = 2;
  const std::string svg = case_map(shown);
  EXPECT_EQ(count(svg, "class=\"pair visible hop\""), 6);
  EXPECT_EQ(count(svg, "class=\"pair\""), 3);
}

TEST(CaseMap, cases_without_pairs_or_with_too_many_are_left_out) {
  verify::Case shown;
  shown.shape = {1, 1, 1, 0, 3, 2, 2};
  EXPECT_EQ(case_map(shown), "");
  shown.shape = {1, 1, 1, 500, 3, 2, 2};
  EXPECT_EQ(case_map(shown), "");
}

}  // namespace
}  // namespace ringlab::report
