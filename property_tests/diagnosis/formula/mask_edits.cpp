// Masks that are asked another question than their own.
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The keys that a loop ends with at the first hidden one: those of a piece, or all.
enum class Ended { piece, loop };

/// Shows what a loop sees that ends at its first hidden key.
void stop_at_hidden(Model& model, KeyOrder order, Piece piece, Ended ended) {
  const Mask mask = model.trial.problem.mask;
  std::vector<std::uint8_t> seen(model.key_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    bool goes_on = true;
    for (const auto& part : key_pieces(model, i, order, piece)) {
      goes_on |= ended == Ended::piece;
      for (const std::int64_t j : part) {
        goes_on &= mask.allows(i, j);
        seen[model.pair(i, j)] = goes_on;
      }
    }
  }
  see_pairs(model, [&](auto i, auto j) { return seen[model.pair(i, j)] != 0; });
}

/// The keys of a tile that get no score of their own: all behind the first hidden one, which ends the
/// loop, or all hidden ones, whose score is not set to -inf.
enum class Unset { behind_the_first_hidden, hidden };

/// Lets keys without a score count with the one that lies in their place: that of the tile before,
/// or, in the first tile, something that nobody knows.
void keep_scores(Model& model, KeyOrder order, Reach reach, Unset unset) {
  const Mask mask = model.trial.problem.mask;
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  const Model right = model;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    std::vector<double> places(static_cast<std::size_t>(model.trial.options.tile_keys),
                               std::nan(""));
    for (const auto& tile : key_pieces(model, i, order, Piece::tile)) {
      if (tile.empty() || !reached[model.pair(i, tile.front())]) continue;
      bool ended = false;
      for (std::size_t at = 0; at < tile.size(); ++at) {
        const std::int64_t j = tile[at];
        const bool hidden = !mask.allows(i, j);
        const bool ends = unset == Unset::behind_the_first_hidden && hidden && !ended;
        if (!ended && !(hidden && unset == Unset::hidden)) {
          places[at] = hidden ? kNoScore : right.score(b, h, i, j);
        }
        ended |= ends;
        const double score = places[at];
        const double counts = std::isnan(score) ? kWild : score == kNoScore ? 0 : 1;
        if (counts == 1) model.score(b, h, i, j) = score;
        model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = counts;
      }
    }
  });
}

void add_stale_scores(std::vector<Hypothesis>& all) {
  for (const auto& [order, reach] : {std::pair{KeyOrder::by_owner, Reach::tiles_by_owner},
                                     {KeyOrder::by_hop, Reach::tiles_by_hop},
                                     {KeyOrder::by_owner, Reach::everything},
                                     {KeyOrder::by_hop, Reach::everything}}) {
    const auto add = [&, order = order, reach = reach](const Suspect& suspect, Unset unset) {
      all.push_back(by_model(suspect, [=](Model& m) { keep_scores(m, order, reach, unset); }));
    };
    add({"mask.ends_a_tile_before_stale_scores",
         "the first hidden key ends the loop over a tile, and scores behind it stay those of the "
         "tile before",
         2},
        Unset::behind_the_first_hidden);
    add({"mask.stale_scores_of_hidden_keys",
         "scores of hidden keys are not set: they stay those of the tile before", 2},
        Unset::hidden);
  }
}

/// Leaves out blocks of (rank, owner) of which only a part is visible.
void skip_partial_blocks(Model& model) {
  const std::vector<std::uint8_t> partial = pairs_in_reach(model, Reach::partial_blocks);
  count_pairs(model, [&](auto i, auto j) { return partial[model.pair(i, j)] ? 0.0 : 1.0; });
}

/// Numbers by which a mask may be asked for a token: its position, its row in the chunk of its rank,
/// its row where chunks lie one after the other.
enum class Number { position, in_chunk, gathered, in_tile };

/// The positions of the rows that have the numbers of these rows in their tiles: all are taken for
/// rows of the first tile.
std::vector<std::int64_t> positions_in_tile(const Layout& layout, std::int64_t tile) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(layout.tokens()));
  for (const auto& chunk : Chunks(layout).tokens) {
    for (std::size_t row = 0; row < chunk.size(); ++row) {
      positions[static_cast<std::size_t>(chunk[row])] = chunk[row % static_cast<std::size_t>(tile)];
    }
  }
  return positions;
}

std::vector<std::int64_t> numbers_of(const Layout& layout, Number number, std::int64_t tile) {
  if (number == Number::in_tile) return positions_in_tile(layout, tile);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(layout.tokens()));
  std::int64_t gathered = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    std::int64_t row = 0;
    for (const std::int64_t token : layout.positions(rank).to_list()) {
      numbers[static_cast<std::size_t>(token)] = number == Number::position   ? token
                                                 : number == Number::in_chunk ? row
                                                                              : gathered;
      ++row;
      ++gathered;
    }
  }
  return numbers;
}

struct Numbers {
  Number queries, keys;
};
using Allowed = std::function<bool(const Model&, std::int64_t query, std::int64_t key)>;

/// Asks about pairs in reach by these numbers.
void ask_by_numbers(Model& model, const Numbers& by, Reach reach, const Allowed& allowed) {
  const RunOptions& options = model.trial.options;
  const auto queries = numbers_of(query_layout(model), by.queries, options.tile_queries);
  const auto keys = numbers_of(key_layout(model), by.keys, options.tile_keys);
  const Mask mask = model.trial.problem.mask;
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  see_pairs(model, [&](auto i, auto j) {
    if (!reached[model.pair(i, j)]) return mask.allows(i, j);
    return allowed(model, queries[static_cast<std::size_t>(i)], keys[static_cast<std::size_t>(j)]);
  });
}

bool by_the_mask(const Model& model, std::int64_t query, std::int64_t key) {
  return model.trial.problem.mask.allows(query, key);
}

void add_numbers(std::vector<Hypothesis>& all) {
  const auto add = [&](const Suspect& suspect, const Numbers& by) {
    for (const Reach reach :
         {Reach::everything, Reach::visible_blocks, Reach::partial_blocks, Reach::tiles_by_owner}) {
      all.push_back(
          by_model(suspect, [=](Model& m) { ask_by_numbers(m, by, reach, by_the_mask); }));
    }
  };
  add({"mask.local_positions", "keys are masked by their row in the chunk, not by their position"},
      {Number::position, Number::in_chunk});
  add({"mask.local_positions_of_queries",
       "queries are masked by their row in the chunk, not by their position"},
      {Number::in_chunk, Number::position});
  add({"mask.local_positions_of_both", "queries and keys are masked by their rows in their chunks"},
      {Number::in_chunk, Number::in_chunk});
  add({"mask.queries_by_their_place_in_the_tile",
       "queries are masked as those of the first tile: where the tile begins, is not added"},
      {Number::in_tile, Number::position});
  add({"mask.gathered_rows_of_keys", "keys are masked by their row among gathered chunks"},
      {Number::position, Number::gathered});
  add({"mask.gathered_rows_of_queries", "queries are masked by their row among gathered chunks"},
      {Number::gathered, Number::position});
}

/// Masks row r of all heads of a rank as its query r / heads, as if heads lay inside queries.
void transpose_rows(Model& model) {
  const Chunks queries(query_layout(model));
  const Mask mask = model.trial.problem.mask;
  const std::int64_t heads = model.shape().q_heads;
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    const auto& own = queries.of(model.rank_of_query(i));
    const std::int64_t row =
        (b * heads + h) * std::ssize(own) + static_cast<std::int64_t>(queries.row_of(i));
    const auto asked = static_cast<std::size_t>(row / heads);
    const double counts = asked >= own.size() ? kWild : mask.allows(own[asked], j) ? 1 : 0;
    model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = counts;
  });
}

/// Asks a fixed causal question, whatever the mask is.
void add_causal(std::vector<Hypothesis>& all) {
  struct Question {
    Suspect suspect;
    bool (*allowed)(std::int64_t query, std::int64_t key, std::int64_t later);
  };
  const std::vector<Question> questions = {
      {{"mask.taken_for_causal", "every mask is taken for causal, aligned top left"},
       [](std::int64_t i, std::int64_t j, std::int64_t) { return j <= i; }},
      {{"mask.taken_for_causal_bottom_right",
        "every mask is taken for causal, aligned bottom right"},
       [](std::int64_t i, std::int64_t j, std::int64_t later) { return j <= i + later; }},
      {{"mask.taken_for_strictly_causal",
        "every mask is taken for causal, and queries do not see their own key"},
       [](std::int64_t i, std::int64_t j, std::int64_t) { return j < i; }},
      {{"mask.taken_for_the_future", "every mask is taken for causal, the wrong way round"},
       [](std::int64_t i, std::int64_t j, std::int64_t) { return j >= i; }}};
  for (const Question& question : questions) {
    for (const Numbers& by :
         {Numbers{Number::position, Number::position}, Numbers{Number::in_chunk, Number::in_chunk},
          Numbers{Number::in_chunk, Number::position}, Numbers{Number::in_chunk, Number::gathered},
          Numbers{Number::gathered, Number::gathered}}) {
      all.push_back(by_model(question.suspect, [=](Model& m) {
        const std::int64_t later = m.shape().kv_tokens - m.shape().q_tokens;
        ask_by_numbers(m, by, Reach::everything,
                       [=](const Model&, auto i, auto j) { return question.allowed(i, j, later); });
      }));
    }
  }
}

}  // namespace

std::vector<Hypothesis> mask_edits() {
  std::vector<Hypothesis> all;
  for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
    for (const auto& [piece, name] :
         {std::pair{Piece::tile, "tile"}, std::pair{Piece::chunk, "chunk"}}) {
      all.push_back(by_model(
          {std::string("mask.ends_a_") + name,
           std::string("the first hidden key ends the loop over a ") + name},
          [=, piece = piece](Model& m) { stop_at_hidden(m, order, piece, Ended::piece); }));
    }
    all.push_back(
        by_model({"mask.ends_the_loop", "the first hidden key ends the loop over all keys"},
                 [=](Model& m) { stop_at_hidden(m, order, Piece::key, Ended::loop); }));
  }
  all.push_back(by_model({"mask.partial_blocks_skipped",
                          "blocks of two ranks of which only a part is visible are skipped"},
                         skip_partial_blocks));
  for (const Reach reach : {Reach::whole_tiles_by_owner, Reach::whole_tiles_by_hop}) {
    all.push_back(by_model({"mask.partial_tiles_skipped",
                            "tiles that reach beyond what their queries see are skipped", 2},
                           [=](Model& m) {
                             const auto whole = pairs_in_reach(m, reach);
                             count_pairs(m,
                                         [&](auto i, auto j) { return 1.0 * whole[m.pair(i, j)]; });
                           }));
  }
  all.push_back(by_model({"mask.bits_ignored", "of a bit matrix nothing is hidden"}, [](Model& m) {
    const Mask mask = m.trial.problem.mask;
    see_pairs(m, [&](auto i, auto j) {
      const KeyInterval seen = mask.interval(i);
      return seen.begin <= j && j < seen.end;
    });
  }));
  all.push_back(by_model({"mask.heads_inside_queries",
                          "row r of all heads is masked as query r / heads, not as r % queries", 2},
                         transpose_rows));
  add_stale_scores(all);
  add_numbers(all);
  add_causal(all);
  return all;
}

}  // namespace ringlab::verify
