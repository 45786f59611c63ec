// Chunks and queries that are taken for those of another rank: their numbers are right, and their
// positions are not.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "property_tests/diagnosis/formula/ring_place.h"
#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// A rank that computes on a chunk, the chunk's owner, and the hop at which that happens.
struct Meeting {
  int rank, owner, hop;
  const std::vector<int>& visits;  ///< the owners that the rank meets, hop by hop
  const RingPlaces& places;

  RingPlace place() const { return places.of(rank, owner); }
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
  const RingPlaces places(model.trial.options);
  const auto is_known = [&](const Meeting& at) {
    if (holders.keys(at) < 0) return false;
    return queries.of(holders.queries(at)).size() == queries.of(at.rank).size() &&
           keys.of(holders.keys(at)).size() == keys.of(at.owner).size();
  };
  std::vector<bool> known;
  for (int rank = 0; rank < model.trial.options.ranks; ++rank) {
    const auto& visits = model.visits[static_cast<std::size_t>(rank)];
    bool all = true;
    for (int hop = 0; hop < std::ssize(visits); ++hop) {
      all &= is_known({rank, visits[static_cast<std::size_t>(hop)], hop, visits, places});
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
           sees({model.rank_of_query(i), model.rank_of_key(j), hop, visits, places}, i, j);
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

/// Judges by these holders only if a block is skipped, or also if it is taken whole.
enum class Judged { skipped, skipped_or_whole };
void judge_blocks(Model& model, const Holders& holders, Judged judged_too) {
  const Layout queries = query_layout(model), keys = key_layout(model);
  const Mask mask = model.trial.problem.mask;
  std::map<std::pair<int, int>, Coverage> judged;
  see_as_held(model, holders, [&](const Meeting& at, auto i, auto j) {
    const auto [found, is_new] = judged.try_emplace({at.rank, at.owner}, Coverage::empty);
    if (is_new) {
      found->second =
          mask.classify(queries.positions(holders.queries(at)), keys.positions(holders.keys(at)));
    }
    if (found->second == Coverage::empty) return false;
    const bool whole = found->second == Coverage::full && judged_too == Judged::skipped_or_whole;
    return whole || mask.allows(i, j);
  });
}

void ask_for_blocks(Model& model, const Holders& holders) {
  judge_blocks(model, holders, Judged::skipped_or_whole);
}
void ask_for_skips(Model& model, const Holders& holders) {
  judge_blocks(model, holders, Judged::skipped);
}

/// Reads the queries of another rank, where they travel to the keys, under the right positions.
void read_queries(Model& model, Holder holder) {
  const Chunks queries(query_layout(model));
  const RingPlaces places(model.trial.options);
  std::vector<std::uint8_t> wild(model.query_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    const int rank = model.rank_of_query(i);
    const auto& visits = model.visits[static_cast<std::size_t>(rank)];
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const int hop = model.hop(i, j);
      if (hop < 0) continue;
      const auto& rows = queries.of(holder({rank, model.rank_of_key(j), hop, visits, places}));
      wild[model.pair(i, j)] = rows.size() != queries.of(rank).size();
      if (!wild[model.pair(i, j)]) model.query_read[model.pair(i, j)] = rows[queries.row_of(i)];
    }
  }
  score_again(model);
  count_pairs(model, [&](auto i, auto j) { return wild[model.pair(i, j)] ? kWild : 1.0; });
}

struct Taken {
  const char *id, *words;
  Holder holder;
};

void add(std::vector<Hypothesis>& all, const Taken& taken, Holder of_queries, Holder of_keys) {
  for (const auto ask : {ask_for_rows, ask_for_blocks, ask_for_skips}) {
    all.push_back(by_model({taken.id, taken.words, 2}, [=](Model& m) {
      ask(m, {of_queries, of_keys});
    }));
  }
}

/// The rank whose keys those of a chunk are taken for.
const Taken kKeysTaken[] = {
    Taken{"ring.owners_reversed",
          "the chunk that comes h hops from one side is taken for that of the rank h places "
          "away on the other side",
          [](const Meeting& at) { return at.wrapped(2 * at.rank - at.owner); }},
    Taken{"ring.owner_of_the_hop_before", "a chunk is taken for the one that came a hop before it",
          [](const Meeting& at) { return at.owner_at(std::max(at.hop - 1, 0)); }},
    Taken{"ring.owner_of_the_next_hop", "a chunk is taken for the one that comes a hop after it",
          [](const Meeting& at) { return at.hop == 0 ? at.owner : at.owner_at(at.hop + 1); }},
    Taken{"ring.owner_of_the_next_hop", "a chunk is taken for the one that comes a hop after it",
          [](const Meeting& at) { return at.owner_at(at.hop + 1); }},
    Taken{"ring.owner_is_the_hop", "the chunk of hop h is taken for that of rank h",
          [](const Meeting& at) { return at.hop; }},
    Taken{"ring.owner_along_the_ring",
          "chunks that come from the other side are taken for those that come along the ring",
          [](const Meeting& at) {
            RingPlace place = at.place();
            place.way = 1;
            return at.places.by_distance(at.rank, place);
          }},
    Taken{"ring.direction_forgotten",
          "chunks are taken for those that come when they travel to the next rank, whatever the "
          "direction is",
          [](const Meeting& at) {
            RingPlace place = at.place();
            place.way *= at.places.step();
            return at.places.by_distance(at.rank, place);
          }},
    Taken{"ring.direction_forgotten_in_nodes",
          "inside a node chunks are taken for those that come when they travel to the next "
          "rank, whatever the direction is",
          [](const Meeting& at) {
            RingPlace place = at.place();
            place.hop *= at.places.step();
            return at.places.by_node(at.rank, place);
          }},
    Taken{"ring.node_ahead",
          "chunks of the node n behind this one are taken for those of the node n ahead",
          [](const Meeting& at) {
            RingPlace place = at.place();
            place.round *= -1;
            return at.places.by_node(at.rank, place);
          }},
    Taken{"ring.block_forgotten", "chunks of a larger node are taken for those of its first block",
          [](const Meeting& at) {
            RingPlace place = at.place();
            place.block = 0;
            return at.places.by_node(at.rank, place);
          }},
    Taken{"ring.owner_is_the_sender",
          "every chunk is taken for that of the neighbour who passes it on",
          [](const Meeting& at) { return at.hop == 0 ? at.owner : at.owner_at(1); }},
    Taken{"mask.positions_of_the_own_chunk",
          "keys of every chunk are masked by the positions of the own one",
          [](const Meeting& at) { return at.rank; }},
    Taken{"mask.positions_of_rank_0", "keys of every chunk are masked as those of rank 0",
          [](const Meeting&) { return 0; }}};

/// The rank whose queries those of a rank are taken for.
const Taken kQueriesTaken[] = {
    Taken{"mask.queries_of_rank_0", "queries are masked as those of rank 0",
          [](const Meeting&) { return 0; }},
    Taken{"mask.queries_of_the_owner",
          "queries are masked by the positions of those that the owner of the keys has",
          right_owner},
    Taken{"mask.queries_of_the_next_rank", "queries are masked as those of the next rank",
          [](const Meeting& at) { return at.wrapped(at.rank + 1); }},
    Taken{
        "mask.queries_of_the_next_rank", "queries are masked as those of the next rank",
        [](const Meeting& at) { return at.owner == at.rank ? at.wrapped(at.rank + 1) : at.rank; }},
    Taken{"mask.queries_of_the_rank_before", "queries are masked as those of the rank before",
          [](const Meeting& at) { return at.wrapped(at.rank - 1); }}};

/// The rank whose queries are read.
const Taken kQueriesRead[] = {
    Taken{"ring.queries_of_the_owner",
          "keys meet the queries of their own rank, not those that came to be answered",
          right_owner},
    Taken{"ring.queries_from_the_other_side",
          "keys meet queries that come from the rank as far away on the other side",
          [](const Meeting& at) { return at.wrapped(2 * at.owner - at.rank); }},
    Taken{"ring.queries_of_rank_0", "keys meet the queries of rank 0, whoever asks",
          [](const Meeting&) { return 0; }}};

}  // namespace

std::vector<Hypothesis> holder_edits() {
  std::vector<Hypothesis> all;
  for (const Taken& taken : kKeysTaken) {
    add(all, taken, right_rank, taken.holder);
  }
  for (const Taken& taken : kQueriesTaken) {
    add(all, taken, taken.holder, right_owner);
  }
  for (const Taken& taken : kQueriesRead) {
    all.push_back(by_model({taken.id, taken.words, 2},
                           [holder = taken.holder](Model& m) { read_queries(m, holder); }));
  }
  add(all,
      {"mask.ranks_exchanged",
       "queries are masked as those of the keys' owner, and keys as its own", nullptr},
      right_owner, right_rank);
  return all;
}

}  // namespace ringlab::verify
