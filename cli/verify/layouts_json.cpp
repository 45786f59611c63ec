// The work of each rank under each layout, for the maps of a page.
#include <algorithm>

#include "cli/verify/verify.h"

namespace ringlab::cli {
namespace {

constexpr int kMostRanksDrawn = 32;
constexpr std::int64_t kSamples = 12;  // per side of a cell, for its share of visible pairs

/// Part `part` of `parts` of a chunk, thinned to at most kSamples positions.
Positions sample_part(const Positions& chunk, int part, int parts) {
  const std::int64_t begin = chunk.size() * part / parts, end = chunk.size() * (part + 1) / parts;
  const std::int64_t step = std::max<std::int64_t>(1, (end - begin + kSamples - 1) / kSamples);
  std::vector<std::int64_t> list;
  for (std::int64_t i = begin; i < end; i += step) list.push_back(chunk[i]);
  return Positions::from_list(list);
}

/// The visible pairs of each cell of a block in percent, 1 … 99 where some are; null for a block
/// without visible or without hidden pairs.
Json cells_json(const Mask& mask, const Positions& queries, const Positions& keys, int ranks) {
  if (mask.classify(queries, keys) != Coverage::partial) return nullptr;
  const int parts = std::clamp(48 / ranks, 1, 12);
  Json rows = Json::array();
  for (int y = 0; y < parts; ++y) {
    const Positions row = sample_part(queries, y, parts);
    Json& percents = rows.emplace_back(Json::array());
    for (int x = 0; x < parts; ++x) {
      const Positions column = sample_part(keys, x, parts);
      const std::int64_t all = row.size() * column.size();
      const std::int64_t seen = all == 0 ? 0 : mask.count(row, column);
      const std::int64_t rounded = all == 0 ? 0 : (200 * seen + all) / (2 * all);
      const bool is_part = 0 < seen && seen < all;
      percents.push_back(is_part ? std::clamp<std::int64_t>(rounded, 1, 99) : rounded);
    }
  }
  return rows;
}

Json layout_json(const report::VerifyRun& run, LayoutKind kind) {
  const int ranks = run.options.ranks;
  const Mask& mask = run.problem.mask;
  const Layout queries(kind, run.problem.shape.q_tokens, ranks),
      keys(kind, run.problem.shape.kv_tokens, ranks);
  Json json = {{"layout", layout_name(kind)},   {"chosen", kind == run.options.layout},
               {"query_tokens", Json::array()}, {"key_tokens", Json::array()},
               {"pairs", Json::array()},        {"cells", Json::array()}};
  for (int rank = 0; rank < ranks; ++rank) {
    const Positions& mine = queries.positions(rank);
    Json pairs = Json::array(), cells = Json::array();
    for (int owner = 0; owner < ranks; ++owner) {
      pairs.push_back(mask.count(mine, keys.positions(owner)));
      cells.push_back(cells_json(mask, mine, keys.positions(owner), ranks));
    }
    json["query_tokens"].push_back(mine.size());
    json["key_tokens"].push_back(keys.positions(rank).size());
    json["pairs"].push_back(pairs);
    json["cells"].push_back(cells);
  }
  return json;
}

}  // namespace

Json layouts_json(const report::VerifyRun& run) {
  Json layouts = Json::array();
  if (run.options.ranks <= kMostRanksDrawn) {
    for (const LayoutKind kind :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      layouts.push_back(layout_json(run, kind));
    }
  }
  const bool to_next = run.options.direction == RingDirection::next;
  return {{"direction", to_next ? "next" : "previous"}, {"layouts", layouts}};
}

}  // namespace ringlab::cli
