// Chunks and queries that are taken for those of another rank: their numbers are right, and their
// positions are not.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// A rank that computes on a chunk, the chunk's owner, and the hop at which that happens.
struct Meeting {
  int rank, owner, hop;
  const std::vector<int>& visits;  ///< the owners that the rank meets, hop by hop

  int ranks() const { return static_cast<int>(visits.size()); }
  int wrapped(int number) const { return (number % ranks() + ranks()) % ranks(); }
  int owner_at(int other_hop) const { return visits[static_cast<std::size_t>(wrapped(other_hop))]; }
};
/// The rank whose positions stand for those of queries or keys.
using Holder = int (*)(const Meeting&);
int right_rank(const Meeting& at) { return at.rank; }
int right_owner(const Meeting& at) { return at.owner; }

struct Holders {
  Holder queries, keys;
};

/// Calls sees(meeting, i, j) for the pairs of all meetings. Where another rank has more or fewer
/// rows than there are, nobody knows what is read, and nothing is said of the row.
void see_as_held(Model& model, const Holders& holders,
                 const std::function<bool(const Meeting&, std::int64_t, std::int64_t)>& sees) {
  const Chunks queries(query_layout(model)), keys(key_layout(model));
  const auto is_known = [&](const Meeting& at) {
    return queries.of(holders.queries(at)).size() == queries.of(at.rank).size() &&
           keys.of(holders.keys(at)).size() == keys.of(at.owner).size();
  };
  std::vector<bool> known;
  for (int rank = 0; rank < model.trial.options.ranks; ++rank) {
    const auto& visits = model.visits[static_cast<std::size_t>(rank)];
    bool all = true;
    for (int hop = 0; hop < std::ssize(visits); ++hop) {
      all &= is_known({rank, visits[static_cast<std::size_t>(hop)], hop, visits});
    }
    known.push_back(all);
  }
  const auto is_of_known = [&](std::int64_t i) {
    return known[static_cast<std::size_t>(model.rank_of_query(i))];
  };
  see_pairs(model, [&](auto i, auto j) {
    const auto& visits = model.visits[static_cast<std::size_t>(model.rank_of_query(i))];
    const int hop = model.hop(i, j);
    if (hop < 0) return model.trial.problem.mask.allows(i, j);
    return !is_of_known(i) ||
           sees({model.rank_of_query(i), model.rank_of_key(j), hop, visits}, i, j);
  });
  count_pairs(model, [&](auto i, auto) { return is_of_known(i) ? 1.0 : kWild; });
}

void ask_for_rows(Model& model, const Holders& holders) {
  const Chunks queries(query_layout(model)), keys(key_layout(model));
  const Mask mask = model.trial.problem.mask;
  see_as_held(model, holders, [&](const Meeting& at, auto i, auto j) {
    return mask.allows(queries.of(holders.queries(at))[queries.row_of(i)],
                       keys.of(holders.keys(at))[keys.row_of(j)]);
  });
}

/// Judges by these holders only if a block is skipped, masked or taken whole.
void ask_for_blocks(Model& model, const Holders& holders) {
  const Layout queries = query_layout(model), keys = key_layout(model);
  const Mask mask = model.trial.problem.mask;
  std::map<std::pair<int, int>, Coverage> judged;
  see_as_held(model, holders, [&](const Meeting& at, auto i, auto j) {
    const auto [found, is_new] = judged.try_emplace({at.rank, at.owner}, Coverage::empty);
    if (is_new) {
      found->second =
          mask.classify(queries.positions(holders.queries(at)), keys.positions(holders.keys(at)));
    }
    if (found->second == Coverage::partial) return mask.allows(i, j);
    return found->second == Coverage::full;
  });
}

struct Taken {
  const char *id, *words;
  Holder holder;
};

void add(std::vector<Hypothesis>& all, const Taken& taken, Holder of_queries, Holder of_keys) {
  for (const auto ask : {ask_for_rows, ask_for_blocks}) {
    all.push_back(by_model({taken.id, taken.words, 2}, [=](Model& m) {
      ask(m, {of_queries, of_keys});
    }));
  }
}

}  // namespace

std::vector<Hypothesis> holder_edits() {
  std::vector<Hypothesis> all;
  for (const Taken& taken :
       {Taken{"ring.owners_reversed",
              "the chunk that comes h hops from one side is taken for that of the rank h places "
              "away on the other side",
              [](const Meeting& at) { return at.wrapped(2 * at.rank - at.owner); }},
        Taken{"ring.owner_of_the_hop_before",
              "a chunk is taken for the one that came a hop before it",
              [](const Meeting& at) { return at.owner_at(std::max(at.hop - 1, 0)); }},
        Taken{"ring.owner_of_the_next_hop",
              "a chunk is taken for the one that comes a hop after it",
              [](const Meeting& at) { return at.hop == 0 ? at.owner : at.owner_at(at.hop + 1); }},
        Taken{"ring.owner_of_the_next_hop",
              "a chunk is taken for the one that comes a hop after it",
              [](const Meeting& at) { return at.owner_at(at.hop + 1); }},
        Taken{"ring.owner_is_the_hop", "the chunk of hop h is taken for that of rank h",
              [](const Meeting& at) { return at.hop; }},
        Taken{"ring.owner_is_the_sender",
              "every chunk is taken for that of the neighbour who passes it on",
              [](const Meeting& at) { return at.hop == 0 ? at.owner : at.owner_at(1); }},
        Taken{"mask.positions_of_the_own_chunk",
              "keys of every chunk are masked by the positions of the own one",
              [](const Meeting& at) { return at.rank; }},
        Taken{"mask.positions_of_rank_0", "keys of every chunk are masked as those of rank 0",
              [](const Meeting&) { return 0; }}}) {
    add(all, taken, right_rank, taken.holder);
  }
  for (const Taken& taken :
       {Taken{"mask.queries_of_rank_0", "queries are masked as those of rank 0",
              [](const Meeting&) { return 0; }},
        Taken{"mask.queries_of_the_owner",
              "queries are masked by the positions of those that the owner of the keys has",
              right_owner},
        Taken{"mask.queries_of_the_next_rank", "queries are masked as those of the next rank",
              [](const Meeting& at) { return at.wrapped(at.rank + 1); }},
        Taken{"mask.queries_of_the_next_rank", "queries are masked as those of the next rank",
              [](const Meeting& at) {
                return at.owner == at.rank ? at.wrapped(at.rank + 1) : at.rank;
              }},
        Taken{"mask.queries_of_the_rank_before", "queries are masked as those of the rank before",
              [](const Meeting& at) { return at.wrapped(at.rank - 1); }}}) {
    add(all, taken, taken.holder, right_owner);
  }
  add(all,
      {"mask.ranks_exchanged",
       "queries are masked as those of the keys' owner, and keys as its own", nullptr},
      right_owner, right_rank);
  return all;
}

}  // namespace ringlab::verify
