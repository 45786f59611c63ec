// Mistakes of masks: who sees whom.
#include <algorithm>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The case's mask with the terms of one kind changed.
template <class Term, class Change>
void change_terms(Trial& trial, Change change) {
  std::vector<MaskTerm> terms;
  for (MaskTerm term : trial.problem.mask.terms()) {
    bool kept = true;
    if (auto* found = std::get_if<Term>(&term)) kept = change(*found);
    if (kept) terms.push_back(std::move(term));
  }
  const Shape& shape = trial.problem.shape;
  trial.problem.mask = Mask(std::move(terms)).bind(shape.q_tokens, shape.kv_tokens);
}

template <class Term, class Change>
Hypothesis by_terms(Suspect suspect, Change change) {
  return by_reading(std::move(suspect),
                    [change](Trial& trial) { change_terms<Term>(trial, change); });
}

/// Moves both ends of the visible intervals, among pairs in reach: `<` for `<=`, and the like.
void move_ends(Model& model, Reach reach, std::int64_t begin, std::int64_t end) {
  const Mask mask = model.trial.problem.mask;
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  see_pairs(model, [&](auto i, auto j) {
    if (!reached[model.pair(i, j)]) return mask.allows(i, j);
    const KeyInterval seen = mask.interval(i);
    return j >= seen.begin + begin && j < seen.end + end && mask.bits_allow(i, j);
  });
}

void add_ends(std::vector<Hypothesis>& all, const Suspect& suspect, std::int64_t begin,
              std::int64_t end) {
  for (const Reach reach :
       {Reach::everything, Reach::tiles_by_owner, Reach::tiles_by_hop, Reach::partial_blocks}) {
    all.push_back(by_model(suspect, [=](Model& model) { move_ends(model, reach, begin, end); }));
  }
}

/// Computes blocks of (rank, owner) without mask when some of their pairs are visible: a partial
/// block taken for a full one.
void fill_partial_blocks(Model& model, Reach reach) {
  const Mask mask = model.trial.problem.mask;
  std::vector<std::vector<int>> needed;
  for (int rank = 0; rank < model.trial.options.ranks; ++rank) {
    needed.push_back(needed_chunks(model, rank));
  }
  const auto reached = pairs_in_reach(model, reach);
  see_pairs(model, [&](auto i, auto j) {
    const auto& owners = needed[static_cast<std::size_t>(model.rank_of_query(i))];
    return mask.allows(i, j) ||
           (reached[model.pair(i, j)] && std::ranges::count(owners, model.rank_of_key(j)) > 0);
  });
}

/// Skips tiles of keys whose first key is the only one that a tile of queries sees: the corner of a
/// causal mask, where `<` and `<=` differ.
void skip_corners(Model& model) {
  const Mask mask = model.trial.problem.mask;
  const RunOptions& options = model.trial.options;
  const Layout queries = make_layout(options, model.shape().q_tokens, options.q_layout);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::vector<std::int64_t> rows = queries.positions(rank).to_list();
    for (std::size_t first = 0; first < rows.size();
         first += static_cast<std::size_t>(options.tile_queries)) {
      const std::size_t end =
          std::min(rows.size(), first + static_cast<std::size_t>(options.tile_queries));
      std::int64_t seen_end = 0;
      for (std::size_t at = first; at < end; ++at) {
        seen_end = std::max(seen_end, mask.interval(rows[at]).end);
      }
      for (std::size_t at = first; at < end; ++at) {
        for (const auto& tile : key_pieces(model, rows[at], KeyOrder::by_owner, Piece::tile)) {
          if (seen_end > *std::ranges::min_element(tile) + 1) continue;
          for (const std::int64_t j : tile) {
            for (std::int64_t b = 0; b < model.shape().batch; ++b) {
              for (std::int64_t h = 0; h < model.shape().q_heads; ++h) {
                model.in_acc(b, h, rows[at], j) = model.in_sum(b, h, rows[at], j) = 0;
              }
            }
          }
        }
      }
    }
  }
}

/// Asks a causal mask for keys up to `later` behind the query's number.
void ask_causal(Model& model, std::int64_t later) {
  const auto terms = model.trial.problem.mask.terms();
  const bool causal = std::ranges::any_of(
      terms, [](const MaskTerm& term) { return std::holds_alternative<CausalMask>(term); });
  Trial rest = model.trial;
  change_terms<CausalMask>(rest, [](CausalMask&) { return false; });
  const Mask mask = rest.problem.mask;
  see_pairs(model,
            [&](auto i, auto j) { return (!causal || j <= i + later) && mask.allows(i, j); });
}

/// Hides the first key of each window that has a limit on the left.
void narrow_windows(Model& model) {
  const Mask mask = model.trial.problem.mask;
  const std::int64_t later = model.shape().kv_tokens - model.shape().q_tokens;
  see_pairs(model, [&](auto i, auto j) {
    const bool is_edge = std::ranges::any_of(mask.terms(), [&](const MaskTerm& term) {
      const auto* window = std::get_if<WindowMask>(&term);
      return window && window->left != WindowMask::kUnlimited && j == i + later - window->left;
    });
    return !is_edge && mask.allows(i, j);
  });
}

void add_edges(std::vector<Hypothesis>& all) {
  add_ends(all, {"mask.one_key_too_many", "query i sees one key after its last"}, 0, 1);
  add_ends(all, {"mask.one_key_too_few", "query i does not see its last key"}, 0, -1);
  add_ends(all, {"mask.one_key_before", "query i sees one key before its first"}, -1, 0);
  add_ends(all, {"mask.first_key_missing", "query i does not see its first key"}, 1, 0);
  const Suspect ahead{"mask.causal_one_ahead", "causal: query i sees key i + 1"};
  for (const Reach reach : {Reach::everything, Reach::visible_blocks}) {
    all.push_back(by_model(ahead, [=](Model& model) {
      const Mask mask = model.trial.problem.mask;
      const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
      see_pairs(model, [&](auto i, auto j) {
        const bool before = j > 0 && reached[model.pair(i, j)] && mask.allows(i, j - 1);
        return before || mask.allows(i, j);
      });
    }));
  }
  all.push_back(by_terms<CausalMask>({"mask.causal_ignored", "the causal mask is ignored"},
                                     [](CausalMask&) { return false; }));
  all.push_back(by_model(ahead, [](Model& model) {
    ask_causal(model, model.shape().kv_tokens - model.shape().q_tokens + 1);
  }));
  all.push_back(by_model({"mask.causal_top_left", "causal is aligned at the top left"},
                         [](Model& model) { ask_causal(model, 0); }));
  all.push_back(by_model({"mask.ignored", "the mask is ignored"},
                         [](Model& model) { see_pairs(model, [](auto, auto) { return true; }); }));
  all.push_back(
      by_model({"mask.inverted", "visible and hidden pairs are exchanged"}, [](Model& model) {
        const Mask mask = model.trial.problem.mask;
        see_pairs(model, [&](auto i, auto j) { return !mask.allows(i, j); });
      }));
}

void add_windows_and_documents(std::vector<Hypothesis>& all) {
  constexpr std::int64_t kFar = WindowMask::kUnlimited;
  all.push_back(by_terms<WindowMask>({"mask.window_ignored", "the window is ignored"},
                                     [](WindowMask&) { return false; }));
  all.push_back(by_terms<WindowMask>(
      {"mask.window_one_too_wide", "the window begins one key too early"}, [](WindowMask& window) {
        if (window.left != kFar) ++window.left;
        return true;
      }));
  all.push_back(by_model({"mask.window_one_too_narrow", "the window begins one key too late"},
                         narrow_windows));
  all.push_back(
      by_terms<WindowMask>({"mask.window_right_one_too_far", "the window ends one key too late"},
                           [](WindowMask& window) {
                             if (window.right != kFar) ++window.right;
                             return true;
                           }));
  all.push_back(by_terms<WindowMask>(
      {"mask.window_sides_swapped", "left and right of the window are exchanged"},
      [](WindowMask& window) {
        std::swap(window.left, window.right);
        return true;
      }));
  all.push_back(by_terms<DocumentsMask>({"mask.documents_ignored", "document borders are ignored"},
                                        [](DocumentsMask&) { return false; }));
  all.push_back(by_terms<DocumentsMask>(
      {"mask.document_border_early", "the first document ends one token too early"},
      [](DocumentsMask& documents) {
        if (documents.lengths.size() < 2 || documents.lengths[0] == 0) return true;
        --documents.lengths[0];
        ++documents.lengths[1];
        return true;
      }));
  all.push_back(by_terms<DocumentsMask>(
      {"mask.document_border_late", "the first document ends one token too late"},
      [](DocumentsMask& documents) {
        if (documents.lengths.size() < 2 || documents.lengths[1] == 0) return true;
        ++documents.lengths[0];
        --documents.lengths[1];
        return true;
      }));
  all.push_back(by_terms<PrefixMask>({"mask.prefix_ignored", "the prefix is ignored: causal"},
                                     [](PrefixMask& prefix) {
                                       prefix.tokens = 0;
                                       return true;
                                     }));
}

/// The keys that a kernel counts a tile's keys from when it forgets where the tile begins: all that
/// were gathered, or the chunk at hand.
enum class Counted { gathered, chunk };

/// Asks the mask for the key's place in its tile, so that every tile is masked like the first.
void mask_by_place_in_tile(Model& model, KeyOrder order, Counted counted, Reach reach) {
  const Mask mask = model.trial.problem.mask;
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  std::vector<std::int64_t> asked(reached.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    const auto tiles = key_pieces(model, i, order, Piece::tile);
    const auto chunks = key_pieces(model, i, order, Piece::chunk);
    for (const auto& tile : tiles) {
      const auto holds = [&](const auto& keys) { return std::ranges::count(keys, tile[0]) > 0; };
      const auto& from =
          counted == Counted::gathered ? tiles[0] : *std::ranges::find_if(chunks, holds);
      for (std::size_t place = 0; place < tile.size(); ++place) {
        asked[model.pair(i, tile[place])] = from[std::min(place, from.size() - 1)];
      }
    }
  }
  see_pairs(model, [&](auto i, auto j) {
    return reached[model.pair(i, j)] != 0 && mask.allows(i, asked[model.pair(i, j)]);
  });
}

void add_tiles(std::vector<Hypothesis>& all) {
  const Suspect by_place{"mask.place_in_tile",
                         "keys are masked by their place in the tile: every tile like the first"};
  const auto add = [&](KeyOrder order, Counted counted, Reach reach) {
    all.push_back(
        by_model(by_place, [=](Model& m) { mask_by_place_in_tile(m, order, counted, reach); }));
  };
  for (const Reach reach : {Reach::everything, Reach::tiles_by_owner}) {
    add(KeyOrder::by_owner, Counted::gathered, reach);
  }
  for (const Reach reach : {Reach::everything, Reach::tiles_by_hop}) {
    add(KeyOrder::by_hop, Counted::chunk, reach);
  }
}

}  // namespace

std::vector<Hypothesis> mask_mistakes() {
  std::vector<Hypothesis> all;
  add_edges(all);
  add_windows_and_documents(all);
  for (Hypothesis& one : length_mistakes()) all.push_back(std::move(one));
  add_tiles(all);
  for (const Reach reach : {Reach::everything, Reach::tiles_by_hop}) {
    all.push_back(
        by_model({"mask.partial_blocks_filled",
                  "blocks of two ranks that are partly visible are computed without mask"},
                 [=](Model& m) { fill_partial_blocks(m, reach); }));
  }
  all.push_back(
      by_model({"mask.corner_skipped", "a tile of which only the first key is visible is skipped"},
               skip_corners));
  return all;
}

}  // namespace ringlab::verify
