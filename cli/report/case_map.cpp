// The map of one small case: every (query, key) pair, which rank holds which token, and the hop of
// a ring at which they meet.
#include <fmt/format.h>

#include <algorithm>

#include "cli/report/maps.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr std::int64_t kMostTokensDrawn = 96;  // more would not be read one by one
constexpr double kLeastMapWidth = 264;         // so that small cases are not blown up
constexpr double kReadableCell = 11;           // from here on numbers fit in
constexpr double kLegendHeight = 22;

// The rank that holds each token.
std::vector<int> owners_of(const Layout& layout) {
  std::vector<int> owner(static_cast<std::size_t>(layout.tokens()), 0);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const std::int64_t token : layout.positions(rank).to_list()) {
      owner[static_cast<std::size_t>(token)] = rank;
    }
  }
  return owner;
}

struct PairGrid {
  std::int64_t queries, keys;
  double cell, left = 34, top = 34;
  Box at(std::int64_t query, std::int64_t key) const {
    return {left + cell * static_cast<double>(key), top + cell * static_cast<double>(query), cell,
            cell};
  }
  double bottom() const { return top + cell * static_cast<double>(queries); }
};

// A token in the margin: the rank that holds it, or its number where there is one rank.
void draw_token(Svg& svg, const PairGrid& grid, const Box& box, int rank, std::int64_t token,
                int ranks) {
  const std::string title = fmt::format("token {}, rank {}", token, rank);
  svg.rect(box, "holder", "", title);
  if (grid.cell < kReadableCell) return;
  svg.text(box.x + box.width / 2, box.y + box.height / 2 + 3.5,
           ranks > 1 ? fmt::format("{}", rank) : fmt::format("{}", token), "holdernumber",
           "middle");
}

void draw_margins(Svg& svg, const PairGrid& grid, const HopMap& hops) {
  const char* what = hops.ranks() > 1 ? "keys, by the rank that holds them" : "keys";
  svg.text(grid.left, 12, what, "small");
  svg.text(2, grid.top - 5, hops.ranks() > 1 ? "rank" : "query", "small");
  for (std::int64_t i = 0; i < grid.queries; ++i) {
    draw_token(svg, grid, {17, grid.at(i, 0).y, 13, grid.cell}, hops.query_rank(i), i,
               hops.ranks());
  }
  for (std::int64_t j = 0; j < grid.keys; ++j) {
    draw_token(svg, grid, {grid.at(0, j).x, 17, grid.cell, 13}, hops.key_rank(j), j, hops.ranks());
  }
}

void draw_pair(Svg& svg, const PairGrid& grid, const HopMap& hops, std::int64_t i, std::int64_t j) {
  const Box box = grid.at(i, j);
  const int hop = hops.hop(i, j);
  if (hop < 0) {
    svg.rect(box, "pair", "", fmt::format("query {}, key {}: hidden", i, j));
    return;
  }
  svg.rect(box, "pair visible hop", hop_style(hop, hops.ranks()),
           fmt::format("query {}, key {}: hop {} of rank {}", i, j, hop, hops.query_rank(i)));
  if (hops.ranks() < 2 || grid.cell < kReadableCell) return;
  svg.text(box.x + box.width / 2, box.y + box.height / 2 + 3.5, fmt::format("{}", hop), "onhop",
           "middle");
}

// A frame around the row or the column that was wrong.
void draw_mark(Svg& svg, const PairGrid& grid, const verify::Element& element) {
  const bool is_key = element.tensor.starts_with("dk") || element.tensor.starts_with("dv");
  if (element.token >= (is_key ? grid.keys : grid.queries)) return;
  const Box first = is_key ? grid.at(0, element.token) : grid.at(element.token, 0);
  const double across = is_key ? grid.cell : grid.cell * static_cast<double>(grid.keys);
  const double down = is_key ? grid.cell * static_cast<double>(grid.queries) : grid.cell;
  svg.rect({first.x, first.y, across, down}, "wrongtoken", "",
           fmt::format("{} {} is wrong", is_key ? "key" : "query", element.token));
}

void draw_legend(Svg& svg, const PairGrid& grid, int ranks) {
  const double y = grid.bottom() + kLegendHeight - 6;
  svg.text(grid.left, y,
           ranks > 1 ? "number and colour of a pair: hop of a ring" : "filled: visible pairs",
           "small");
}

}  // namespace

HopMap::HopMap(const verify::Case& c)
    : mask_(verify::make_problem(c).mask), ranks_(c.ranks), direction_(c.direction) {
  const RunOptions options = verify::make_options(c);
  q_owner_ = owners_of(make_layout(options, c.shape.q_tokens, options.q_layout));
  k_owner_ = owners_of(make_layout(options, c.shape.kv_tokens, options.kv_layout));
}

int HopMap::hop(std::int64_t query, std::int64_t key) const {
  if (!mask_.allows(query, key)) return -1;
  const int ahead = query_rank(query) - key_rank(key);
  const int hop = direction_ == RingDirection::next ? ahead : -ahead;
  return (hop % ranks_ + ranks_) % ranks_;
}

std::string case_map(const verify::Case& shown, const std::optional<verify::Element>& marked) {
  const Shape& shape = shown.shape;
  if (std::max(shape.q_tokens, shape.kv_tokens) > kMostTokensDrawn) return "";
  if (shape.q_tokens == 0 || shape.kv_tokens == 0) return "";
  const HopMap hops(shown);
  const double longest = static_cast<double>(std::max(shape.q_tokens, shape.kv_tokens));
  const PairGrid grid{shape.q_tokens, shape.kv_tokens, std::min(26.0, 230.0 / longest)};
  const double width = grid.left + grid.cell * static_cast<double>(grid.keys) + 4;
  Svg svg(std::max(width, kLeastMapWidth), grid.bottom() + kLegendHeight,
          "visible pairs of the failing case: queries down, keys across");
  draw_margins(svg, grid, hops);
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) draw_pair(svg, grid, hops, i, j);
  }
  if (marked) draw_mark(svg, grid, *marked);
  draw_legend(svg, grid, shown.ranks);
  return svg.finish();
}

std::string case_picture(const verify::Case& shown, const std::optional<verify::Element>& marked) {
  const std::string map = case_map(shown, marked);
  if (map.empty()) return "";
  return fmt::format(
      "<div class=\"picture\">{}<p class=\"soft\">Queries down, keys across; filled pairs are "
      "visible, the framed row or column is wrong. The margins tell which rank holds a "
      "token.</p></div>",
      map);
}

}  // namespace ringlab::report
