#include "property_tests/diagnosis/order.h"

#include <algorithm>
#include <limits>

namespace ringlab::verify {
namespace {

/// The owners whose chunks a query's rank sums up, in one of the two orders that implementations
/// use.
std::vector<int> owners_in_order(const Model& model, std::int64_t query, KeyOrder order) {
  if (order == KeyOrder::by_hop) {
    return model.visits[static_cast<std::size_t>(model.rank_of_query(query))];
  }
  std::vector<int> owners(static_cast<std::size_t>(model.trial.options.ranks));
  for (std::size_t owner = 0; owner < owners.size(); ++owner)
    owners[owner] = static_cast<int>(owner);
  return owners;
}

using Keys = std::vector<std::int64_t>;

/// Cuts keys into pieces of `size`; the last one may be shorter, as the last tile of a chunk is.
void cut(const Keys& keys, std::int64_t size, std::vector<Keys>& pieces) {
  for (std::size_t first = 0; first < keys.size(); first += static_cast<std::size_t>(size)) {
    const std::size_t end = std::min(keys.size(), first + static_cast<std::size_t>(size));
    pieces.emplace_back(keys.begin() + static_cast<std::ptrdiff_t>(first),
                        keys.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

/// Tiles of the queries of each rank.
std::vector<Keys> query_tiles(const Model& model) {
  std::vector<Keys> tiles;
  for (const Keys& held : Chunks(query_layout(model)).tokens) {
    cut(held, model.trial.options.tile_queries, tiles);
  }
  return tiles;
}

/// True when the smallest interval around what these queries see holds some of the keys' positions,
/// or all of them: the test by which kernels skip tiles. It errs on the side of looking.
bool meets(const Mask& mask, const Keys& queries, const Keys& keys, bool all) {
  KeyInterval seen{INT64_MAX, INT64_MIN};
  for (const std::int64_t i : queries) {
    const KeyInterval one = mask.interval(i);
    if (one.size() == 0) continue;
    seen = {std::min(seen.begin, one.begin), std::max(seen.end, one.end)};
  }
  const auto [first, last] = std::ranges::minmax(keys);
  return all ? first >= seen.begin && last < seen.end : last >= seen.begin && first < seen.end;
}

/// Keeps blocks of (rank, owner) that `looked_at` takes.
void keep_blocks(const Model& model, std::vector<std::uint8_t>& reach,
                 bool (*looked_at)(Coverage)) {
  const Layout queries = query_layout(model), keys = key_layout(model);
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const Coverage coverage = model.trial.problem.mask.classify(
          queries.positions(model.rank_of_query(i)), keys.positions(model.rank_of_key(j)));
      if (!looked_at(coverage)) reach[model.pair(i, j)] = 0;
    }
  }
}

}  // namespace

Chunks::Chunks(const Layout& layout) : rows(static_cast<std::size_t>(layout.tokens())) {
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    tokens.push_back(layout.positions(rank).to_list());
    for (std::size_t row = 0; row < tokens.back().size(); ++row) {
      rows[static_cast<std::size_t>(tokens.back()[row])] = row;
    }
  }
}

Layout query_layout(const Model& model) {
  const RunOptions& options = model.trial.options;
  return make_layout(options, model.shape().q_tokens, options.q_layout);
}
Layout key_layout(const Model& model) {
  const RunOptions& options = model.trial.options;
  return make_layout(options, model.shape().kv_tokens, options.kv_layout);
}

// Pairs out of reach were never computed, so that no wrong mask can show there.
std::vector<std::uint8_t> pairs_in_reach(const Model& model, Reach reach) {
  if (reach == Reach::everything) return std::vector<std::uint8_t>(model.key_read.size(), 1);
  if (reach == Reach::visible_blocks) {
    std::vector<std::uint8_t> pairs(model.key_read.size(), 1);
    keep_blocks(model, pairs, [](Coverage coverage) { return coverage != Coverage::empty; });
    return pairs;
  }
  std::vector<std::uint8_t> pairs(model.key_read.size());
  const bool whole = reach == Reach::whole_tiles_by_owner || reach == Reach::whole_tiles_by_hop;
  const bool by_owner = reach == Reach::tiles_by_owner || reach == Reach::whole_tiles_by_owner;
  const KeyOrder order = by_owner ? KeyOrder::by_owner : KeyOrder::by_hop;
  for (const Keys& queries : query_tiles(model)) {
    for (const Keys& keys : key_pieces(model, queries.front(), order, Piece::tile)) {
      if (keys.empty() || !meets(model.trial.problem.mask, queries, keys, whole)) {
        continue;
      }
      for (const std::int64_t i : queries) {
        for (const std::int64_t j : keys) pairs[model.pair(i, j)] = 1;
      }
    }
  }
  if (reach == Reach::partial_blocks) {
    keep_blocks(model, pairs, [](Coverage coverage) { return coverage == Coverage::partial; });
  }
  return pairs;
}

std::vector<Keys> key_pieces(const Model& model, std::int64_t query, KeyOrder order, Piece piece) {
  const Layout layout = key_layout(model);
  std::vector<Keys> chunks;
  for (const int owner : owners_in_order(model, query, order)) {
    chunks.push_back(layout.positions(owner).to_list());
  }
  if (piece == Piece::chunk) return chunks;
  if (order == KeyOrder::by_owner) {  // tiles of gathered keys know no chunks
    Keys all;
    for (const Keys& chunk : chunks) all.insert(all.end(), chunk.begin(), chunk.end());
    chunks = {all};
  }
  std::vector<Keys> pieces;
  for (const Keys& chunk : chunks) {
    cut(chunk, piece == Piece::key ? 1 : model.trial.options.tile_keys, pieces);
  }
  return pieces;
}

double largest_score(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i) {
  double top = kNoScore;
  for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
    if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
  }
  return top;
}

std::vector<double> running_maxima(const Model& model, std::int64_t b, std::int64_t h,
                                   std::int64_t i, const std::vector<Keys>& pieces) {
  std::vector<double> maxima;
  double top = -std::numeric_limits<double>::infinity();
  for (const Keys& piece : pieces) {
    for (const std::int64_t j : piece) {
      if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
    }
    maxima.push_back(top);
  }
  return maxima;
}

std::vector<int> needed_chunks(const Model& model, int rank) {
  std::vector<int> needed;
  const Mask& mask = model.trial.problem.mask;
  for (const int owner : model.visits[static_cast<std::size_t>(rank)]) {
    bool sees = false;
    for (std::int64_t i = 0; i < model.shape().q_tokens && !sees; ++i) {
      if (model.rank_of_query(i) != rank) continue;
      for (std::int64_t j = 0; j < model.shape().kv_tokens && !sees; ++j) {
        sees = model.rank_of_key(j) == owner && mask.allows(i, j);
      }
    }
    if (sees) needed.push_back(owner);
  }
  return needed;
}

std::vector<std::vector<int>> visits_of(const Model& model, Visited visited) {
  if (visited == Visited::all) return model.visits;
  std::vector<std::vector<int>> needed;
  for (int rank = 0; rank < model.trial.options.ranks; ++rank) {
    needed.push_back(needed_chunks(model, rank));
  }
  return needed;
}

}  // namespace ringlab::verify
