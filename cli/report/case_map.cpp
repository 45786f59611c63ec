// The map of one small case: every (query, key) pair, and which rank holds which token.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/report/maps.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr std::int64_t kMostTokens = 96;  // more would not be read one by one
constexpr double kLeastWidth = 264;       // so that small cases are not blown up

// The rank that holds each token.
std::vector<int> owners(const Layout& layout) {
  std::vector<int> owner(static_cast<std::size_t>(layout.tokens()), 0);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const std::int64_t token : layout.positions(rank).to_list()) {
      owner[static_cast<std::size_t>(token)] = rank;
    }
  }
  return owner;
}

struct Grid {
  std::int64_t queries, keys;
  double cell, left = 30, top = 30;
  Box at(std::int64_t query, std::int64_t key) const {
    return {left + cell * static_cast<double>(key), top + cell * static_cast<double>(query), cell,
            cell};
  }
};

void draw_ranks(Svg& svg, const Grid& grid, const std::vector<int>& q_owner,
                const std::vector<int>& k_owner, int ranks) {
  const auto label = [&](const Box& box, int rank) {
    svg.rect(box, "hop", hop_style(rank, ranks), fmt::format("rank {}", rank));
    if (grid.cell >= 11) {
      svg.text(box.x + box.width / 2, box.y + box.height / 2 + 3.5, fmt::format("{}", rank),
               "onhop", "middle");
    }
  };
  for (std::int64_t i = 0; i < grid.queries; ++i) {
    const Box box = grid.at(i, 0);
    label({14, box.y, 13, grid.cell}, q_owner[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t j = 0; j < grid.keys; ++j) {
    const Box box = grid.at(0, j);
    label({box.x, 14, grid.cell, 13}, k_owner[static_cast<std::size_t>(j)]);
  }
}

}  // namespace

std::string case_map(const verify::Case& shown) {
  const Problem problem = verify::make_problem(shown);
  const RunOptions options = verify::make_options(shown);
  const Shape& shape = problem.shape;
  if (std::max(shape.q_tokens, shape.kv_tokens) > kMostTokens) return "";
  if (shape.q_tokens == 0 || shape.kv_tokens == 0) return "";
  const double longest = static_cast<double>(std::max(shape.q_tokens, shape.kv_tokens));
  const Grid grid{shape.q_tokens, shape.kv_tokens, std::min(26.0, 230.0 / longest)};
  const double width = grid.left + grid.cell * static_cast<double>(grid.keys) + 4;
  Svg svg(std::max(width, kLeastWidth),
          grid.top + grid.cell * static_cast<double>(grid.queries) + 4,
          "visible pairs of the failing case: queries down, keys across");
  svg.text(grid.left, 10, "keys by rank", "small");
  draw_ranks(svg, grid, owners(make_layout(options, shape.q_tokens, options.q_layout)),
             owners(make_layout(options, shape.kv_tokens, options.kv_layout)), shown.ranks);
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      svg.rect(grid.at(i, j), problem.mask.allows(i, j) ? "pair visible" : "pair", "",
               fmt::format("query {}, key {}", i, j));
    }
  }
  return svg.finish();
}

}  // namespace ringlab::report
