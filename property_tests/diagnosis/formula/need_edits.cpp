// Chunks that a rank takes for needed, or not, by another question than the mask's.
#include <string>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {
namespace {

/// Judges if a chunk is needed by one query and one key.
void need_corners(Model& model, bool last_query, bool last_key, bool own_too) {
  const Chunks queries(query_layout(model)), keys(key_layout(model));
  const Mask mask = model.trial.problem.mask;
  count_pairs(model, [&](auto i, auto j) {
    const auto& rows = queries.of(model.rank_of_query(i));
    const auto& columns = keys.of(model.rank_of_key(j));
    if (!own_too && model.rank_of_query(i) == model.rank_of_key(j)) return 1.0;
    const bool seen = mask.allows(last_query ? rows.back() : rows.front(),
                                  last_key ? columns.back() : columns.front());
    return seen ? 1.0 : 0.0;
  });
}

/// Loops that end at the first chunk that is not needed.
void end_early(Model& model) {
  const NeedMatrix need =
      need_matrix(model.trial.problem.mask, query_layout(model), key_layout(model));
  count_pairs(model, [&](auto i, auto j) {
    const int rank = model.rank_of_query(i), hop = model.hop(i, j);
    const auto& owners = model.visits[static_cast<std::size_t>(rank)];
    for (int before = 1; before < hop; ++before) {
      if (need.pairs(rank, owners[static_cast<std::size_t>(before)]) == 0) return 0.0;
    }
    return 1.0;
  });
}

/// Keeps a chunk at home unless `is_needed` of two counts of visible pairs: the rank's queries with
/// the owner's keys, and the owner's queries with the rank's keys.
void add_counts_of_pairs(std::vector<Hypothesis>& all) {
  const auto by_need = [&](Suspect suspect, bool (*is_needed)(std::int64_t, std::int64_t)) {
    all.push_back(by_model(std::move(suspect), [=](Model& model) {
      const NeedMatrix need =
          need_matrix(model.trial.problem.mask, query_layout(model), key_layout(model));
      count_pairs(model, [&](auto i, auto j) {
        const int rank = model.rank_of_query(i), owner = model.rank_of_key(j);
        return is_needed(need.pairs(rank, owner), need.pairs(owner, rank)) ? 1.0 : 0.0;
      });
    }));
  };
  by_need({"ring.needs_transposed",
           "chunks go to the ranks whose keys their owner's queries see: the wrong way round"},
          [](std::int64_t, std::int64_t back) { return back > 0; });
  by_need({"ring.single_pair_dropped",
           "a chunk of which one query sees one key, and no more, is never computed on"},
          [](std::int64_t pairs, std::int64_t) { return pairs > 1; });
}

}  // namespace

std::vector<Hypothesis> need_edits() {
  std::vector<Hypothesis> all;
  add_counts_of_pairs(all);
  all.push_back(by_model({"ring.ends_where_nothing_comes",
                          "the first hop that brings no needed chunk ends the loop over hops"},
                         end_early));
  struct Corner {
    const char *id, *words;
    bool last_query, last_key;
  };
  for (const Corner& corner :
       {Corner{"first_first", "first query sees its first key", false, false},
        Corner{"first_last", "first query sees its last key", false, true},
        Corner{"last_first", "last query sees its first key", true, false},
        Corner{"last_last", "last query sees its last key", true, true}}) {
    for (const bool own_too : {true, false}) {
      all.push_back(by_model(
          {std::string("ring.needed_by_") + corner.id,
           std::string("a chunk is computed on only if the ") + corner.words, 2},
          [=](Model& m) { need_corners(m, corner.last_query, corner.last_key, own_too); }));
    }
  }
  return all;
}

}  // namespace ringlab::verify
