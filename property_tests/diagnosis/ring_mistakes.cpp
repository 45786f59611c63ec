// Mistakes of rings: chunks dropped, doubled, stale, of different steps.
#include <algorithm>
#include <cstdlib>

#include "property_tests/diagnosis/formula/ring_place.h"
#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {
namespace {

/// A visit of a rank to a chunk: at hop `hop` of its `hops`.
struct Visiting {
  int rank, hop, hops;
  bool own;  ///< the chunk that the rank holds from the start
  RingPlace at;
  const RingPlaces& places;
};
using Times = std::function<double(const Visiting&)>;

/// Multiplies how often each visited chunk counts; unvisited ones keep their count.
void count_visits(Model& model, Visited visited, const Times& times) {
  const auto visits = visits_of(model, visited);
  const RingPlaces places(model.trial.options);
  count_pairs(model, [&](auto i, auto j) {
    const int rank = model.rank_of_query(i), owner = model.rank_of_key(j);
    const std::vector<int>& owners = visits[static_cast<std::size_t>(rank)];
    const auto found = std::ranges::find(owners, owner);
    if (found == owners.end()) return 1.0;
    return times({rank, static_cast<int>(found - owners.begin()), static_cast<int>(owners.size()),
                  owner == rank, places.of(rank, owner), places});
  });
}

void add_counts(std::vector<Hypothesis>& all, const Suspect& suspect, const Times& times) {
  for (const Visited visited : {Visited::all, Visited::needed}) {
    all.push_back(by_model(suspect, [=](Model& model) { count_visits(model, visited, times); }));
  }
}

/// The hop whose chunk is read at hop `hop` of `hops`.
using ReadAt = int (*)(int hop, int hops);
int this_hop(int hop, int) { return hop; }
int first_hop(int, int) { return 0; }
int hop_before(int hop, int) { return std::max(hop - 1, 0); }
int hop_before_on_the_last(int hop, int hops) {
  return hop + 1 == hops ? std::max(hop - 1, 0) : hop;
}
int hop_before_beyond_the_first(int hop, int) { return hop < 2 ? hop : hop - 1; }
/// The hop of the chunk that came with this one from the other side, where both sides take turns.
int other_side(int hop, int hops) {
  if (hop == 0) return 0;
  return hop % 2 == 0 ? hop - 1 : std::min(hop + 1, hops - 1);
}
int first_of_both_sides(int hop, int) { return hop > 0 && hop % 2 == 0 ? hop - 1 : hop; }
int first_remote_hop(int hop, int) { return std::min(hop, 1); }
/// The chunk that came first from the side of this one, where both sides take turns.
int first_hop_of_the_side(int hop, int) { return hop < 3 ? hop : 2 - hop % 2; }
int remote_hop_before(int hop, int hops) { return hop == 0 ? 0 : hop == 1 ? hops - 1 : hop - 1; }

/// Reads chunks together with their positions at another hop than their own, so that they count
/// anew: a stale buffer whose header is stale, too.
void read_whole_chunks(Model& model, Visited visited, ReadAt read) {
  const auto visits = visits_of(model, visited);
  count_visits(model, visited, [&](const Visiting& at) {
    double times = 0;
    for (int hop = 0; hop < at.hops; ++hop) times += read(hop, at.hops) == at.hop;
    return times;
  });
}

/// The owner whose numbers a rank reads in place of those of `owner`; kNobody: unknown.
using OwnerRead = std::function<int(int rank, int owner)>;

/// Puts the numbers of one chunk in the rows of another: a stale buffer under fresh positions.
void read_owners(Model& model, const OwnerRead& keys, const OwnerRead& values) {
  const Chunks chunks(key_layout(model));
  std::vector<std::uint8_t> wild(model.key_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const int rank = model.rank_of_query(i), owner = model.rank_of_key(j);
      const std::size_t rows_here = chunks.of(owner).size();
      const auto place = [&](const OwnerRead& read, std::vector<std::int64_t>& rows_read) {
        const int from = read(rank, owner);
        if (from == kNobody || chunks.of(from).size() != rows_here) {
          wild[model.pair(i, j)] = 1;  // what lies where, is unknown
        } else {
          rows_read[model.pair(i, j)] = chunks.of(from)[chunks.row_of(j)];
        }
      };
      place(keys, model.key_read);
      place(values, model.value_read);
    }
  }
  score_again(model);
  count_pairs(model, [&](auto i, auto j) { return wild[model.pair(i, j)] ? kWild : 1.0; });
}

/// Reads chunks of other hops than their own. Chunks that are not visited stay as they are.
void read_rows(Model& model, Visited visited, ReadAt keys, ReadAt values) {
  const auto visits = visits_of(model, visited);
  const auto reading = [&](ReadAt read) {
    return [&visits, read](int rank, int owner) {
      const std::vector<int>& owners = visits[static_cast<std::size_t>(rank)];
      const auto found = std::ranges::find(owners, owner);
      if (found == owners.end()) return owner;
      const int hop =
          read(static_cast<int>(found - owners.begin()), static_cast<int>(owners.size()));
      return owners[static_cast<std::size_t>(hop)];
    };
  };
  read_owners(model, reading(keys), reading(values));
}

void add_reads(std::vector<Hypothesis>& all, const Suspect& suspect, ReadAt keys, ReadAt values) {
  for (const Visited visited : {Visited::all, Visited::needed}) {
    all.push_back(
        by_model(suspect, [=](Model& model) { read_rows(model, visited, keys, values); }));
  }
}

void add_whole_reads(std::vector<Hypothesis>& all, const Suspect& suspect, ReadAt read) {
  for (const Visited visited : {Visited::all, Visited::needed}) {
    all.push_back(
        by_model(suspect, [=](Model& model) { read_whole_chunks(model, visited, read); }));
  }
}

void add_counted_chunks(std::vector<Hypothesis>& all) {
  const Suspect dropped{"ring.last_chunk_dropped",
                        "the chunk that comes last is never computed on"};
  add_counts(all, dropped, [](const Visiting& v) { return v.hop + 1 == v.hops ? 0.0 : 1.0; });
  add_counts(all, dropped,
             [](const Visiting& v) { return v.hop + 1 == v.hops && v.hops > 1 ? 0.0 : 1.0; });
  add_counts(all, dropped,
             [](const Visiting& v) { return v.hop + 1 == v.hops && !v.own ? 0.0 : 1.0; });
  add_counts(all, {"ring.last_chunk_twice", "the chunk that comes last counts twice"},
             [](const Visiting& v) { return v.hop + 1 == v.hops ? 2.0 : 1.0; });
  add_counts(all,
             {"ring.only_last_chunk", "every hop starts from nothing: only the last chunk counts"},
             [](const Visiting& v) { return v.hop + 1 == v.hops ? 1.0 : 0.0; });
  add_counts(all, {"ring.only_own_chunk", "every rank attends to its own chunk only"},
             [](const Visiting& v) { return v.own ? 1.0 : 0.0; });
  add_counts(all, {"ring.own_chunk_dropped", "ranks do not attend to their own chunk"},
             [](const Visiting& v) { return v.own ? 0.0 : 1.0; });
  add_counts(all,
             {"ring.own_chunk_dropped_but_on_rank_0",
              "all ranks but the first do not attend to their own chunk"},
             [](const Visiting& v) { return v.own && v.rank > 0 ? 0.0 : 1.0; });
  add_counts(all, {"ring.own_chunk_twice", "the own chunk counts twice"},
             [](const Visiting& v) { return v.own ? 2.0 : 1.0; });
  const Suspect one_other{"ring.only_one_other_chunk",
                          "besides the own chunk that of one other rank counts, and no more", 2};
  add_counts(all, one_other,
             [](const Visiting& v) { return v.own || v.hop + 1 == v.hops ? 1.0 : 0.0; });
  add_counts(all, one_other, [](const Visiting& v) { return v.own || v.hop == 1 ? 1.0 : 0.0; });
  for (int hop = 1; hop <= 3; ++hop) {
    const std::string step = std::to_string(hop);
    add_counts(all,
               {"ring.step_" + step + "_dropped", "the chunk of ring step " + step + " is lost"},
               [=](const Visiting& v) { return v.hop == hop ? 0.0 : 1.0; });
    add_counts(
        all, {"ring.step_" + step + "_doubled", "the chunk of ring step " + step + " counts twice"},
        [=](const Visiting& v) { return v.hop == hop ? 2.0 : 1.0; });
  }
}

/// Chunks that never count, by the way they come.
void add_ways(std::vector<Hypothesis>& all) {
  struct Lost {
    const char *id, *words;
    bool (*is_lost)(const Visiting& v);
  };
  for (const Lost& lost :
       {Lost{"ring.one_side_dropped", "of the chunks from two sides only one is computed on",
             [](const Visiting& v) { return v.at.way < 0; }},
        Lost{"ring.one_side_dropped", "of the chunks from two sides only one is computed on",
             [](const Visiting& v) { return v.at.way > 0 && !v.own; }},
        Lost{"ring.last_exchange_dropped",
             "the chunks from furthest away are never computed on: an exchange is missing",
             [](const Visiting& v) { return !v.own && v.at.distance == v.places.farthest(1); }},
        Lost{"ring.first_hop_in_nodes_dropped",
             "the chunk with which a rank begins the ring inside its node is never computed on",
             [](const Visiting& v) { return v.at.hop == 0; }},
        Lost{"ring.first_hop_in_nodes_dropped",
             "the chunk with which a rank begins the ring inside its node is never computed on",
             [](const Visiting& v) { return v.at.hop == 0 && !v.own; }},
        Lost{"ring.only_the_own_node", "chunks of other nodes are never computed on",
             [](const Visiting& v) { return v.at.round > 0; }},
        Lost{"ring.own_node_dropped", "of the own node only the own chunk is computed on",
             [](const Visiting& v) { return v.at.round == 0 && !v.own; }}}) {
    add_counts(all, {lost.id, lost.words, 2},
               [is_lost = lost.is_lost](const Visiting& v) { return is_lost(v) ? 0.0 : 1.0; });
  }
  add_counts(
      all, {"ring.chunk_one_step_late", "every step computes on the chunk of the step before"},
      [](const Visiting& v) {
        const auto later = [&](int way) { return v.at.distance + 1 <= v.places.farthest(way); };
        return v.own ? 1.0 + later(1) + later(-1) : 1.0 * later(v.at.way);
      });
}

void add_owners(std::vector<Hypothesis>& all) {
  const auto by_ranks = [&](Suspect suspect, bool (*seen)(int rank, int owner)) {
    all.push_back(by_model(std::move(suspect), [=](Model& model) {
      count_pairs(model, [&](auto i, auto j) {
        return seen(model.rank_of_query(i), model.rank_of_key(j)) ? 1.0 : 0.0;
      });
    }));
  };
  by_ranks(
      {"ring.previous_rank_skipped", "the chunk of the rank just before is taken for invisible"},
      [](int rank, int owner) { return owner != rank - 1; });
  by_ranks({"ring.later_ranks_skipped",
            "chunks of higher ranks are skipped, which only a contiguous causal ring may do"},
           [](int rank, int owner) { return owner <= rank; });
  // Half way round: as far one way as the other.
  const auto middle = [&](Suspect suspect, double times) {
    all.push_back(by_model(std::move(suspect), [=](Model& model) {
      const int ranks = model.trial.options.ranks;
      count_pairs(model, [&](auto i, auto j) {
        const int away = std::abs(model.rank_of_query(i) - model.rank_of_key(j));
        return 2 * away == ranks ? times : 1.0;
      });
    }));
  };
  middle({"ring.middle_chunk_twice", "the chunk half way round the ring counts twice"}, 2);
  middle({"ring.middle_chunk_dropped", "the chunk half way round the ring is never computed on"},
         0);
  all.push_back(by_model(
      {"ring.remainder_of_chunks_dropped", "rows of a chunk beyond N / P are dropped"},
      [](Model& model) {
        const Chunks chunks(key_layout(model));
        const std::size_t kept = chunks.rows.size() / chunks.tokens.size();
        count_pairs(model, [&](auto, auto j) { return chunks.row_of(j) < kept ? 1.0 : 0.0; });
      }));
}

/// The places of two ranks in nodes of options.node_ranks ranks; the last node may be smaller.
struct InNodes {
  int width, number, size;  ///< the first rank's number in its node, and the node's ranks
  int other_number;
  bool same_node;
};
InNodes in_nodes(const RunOptions& options, int rank, int other) {
  const int width = options.node_ranks;
  return {width, rank % width, std::min(width, options.ranks - rank / width * width), other % width,
          rank / width == other / width};
}

void add_nodes(std::vector<Hypothesis>& all) {
  // Runs with a last, smaller node among several never end; one that is the only node has no rounds.
  all.push_back(
      by_model({"ring.nodes_rounded_down",
                "ranks / W is rounded down: a last node of fewer than W ranks is no node"},
               [](Model& model) {
                 const RunOptions& options = model.trial.options;
                 const bool none = options.node_ranks > options.ranks;
                 count_pairs(model, [&](auto, auto) { return none ? 0.0 : 1.0; });
               }));
  all.push_back(
      by_model({"ring.larger_node_cut_off",
                "of a node with more ranks than the own one, the chunks beyond are never fetched"},
               [](Model& model) {
                 count_pairs(model, [&](auto i, auto j) {
                   const InNodes at =
                       in_nodes(model.trial.options, model.rank_of_query(i), model.rank_of_key(j));
                   return !at.same_node && at.other_number >= at.size ? 0.0 : 1.0;
                 });
               }));
  all.push_back(by_model(
      {"ring.inner_ring_reversed",
       "inside a node chunks are taken for those that go round the other way"},
      [](Model& model) {
        const RunOptions& options = model.trial.options;
        const auto mirrored = [&](int rank, int owner) {
          const InNodes at = in_nodes(options, rank, owner);
          const int block = at.other_number / at.size * at.size;
          const int number = (2 * at.number - at.other_number % at.size + at.size) % at.size;
          const int first = owner - at.other_number, read = first + block + number;
          return read < std::min(first + at.width, options.ranks) ? read : kNobody;
        };
        read_owners(model, mirrored, mirrored);
      }));
}

}  // namespace

std::vector<Hypothesis> ring_mistakes() {
  std::vector<Hypothesis> all;
  add_counted_chunks(all);
  add_ways(all);
  add_owners(all);
  add_nodes(all);
  add_whole_reads(all,
                  {"ring.stale_chunk_on_last_step",
                   "the last step computes on the chunk of the step before, once more"},
                  hop_before_on_the_last);
  add_whole_reads(all, {"ring.chunk_never_moves", "every step computes on the own chunk"},
                  first_hop);
  add_whole_reads(
      all,
      {"ring.one_side_twice",
       "the chunk that came from one side is computed on in place of that from the other"},
      first_of_both_sides);
  add_whole_reads(
      all, {"ring.chunk_one_step_late", "every step computes on the chunk of the step before"},
      hop_before);
  add_reads(all, {"ring.values_stay", "K moves on and V stays that of the own chunk"}, this_hop,
            first_hop);
  add_reads(all, {"ring.keys_stay", "V moves on and K stays that of the own chunk"}, first_hop,
            this_hop);
  const Suspect values_late{"ring.values_one_step_late",
                            "keys of one step meet values of the step before"};
  add_reads(all, values_late, this_hop, hop_before);
  add_reads(all, values_late, this_hop, hop_before_beyond_the_first);
  const Suspect keys_late{"ring.keys_one_step_late",
                          "values of one step meet keys of the step before"};
  add_reads(all, keys_late, hop_before, this_hop);
  add_reads(all, keys_late, hop_before_beyond_the_first, this_hop);
  add_reads(all,
            {"ring.sides_exchanged",
             "keys and values from one side meet the positions of the chunk from the other side"},
            other_side, other_side);
  const Suspect neighbour{"ring.own_chunk_always_passed_on",
                          "every rank passes its own chunk on at every hop, whatever came: numbers "
                          "are the neighbour's",
                          2};
  for (const ReadAt read : {first_remote_hop, first_hop_of_the_side}) {
    add_reads(all, neighbour, read, read);
    add_whole_reads(all, neighbour, read);
  }
  const Suspect positions{"ring.positions_of_another_step",
                          "keys and values of one step meet the positions of another"};
  add_reads(all, positions, remote_hop_before, remote_hop_before);
  add_reads(all, positions, hop_before, hop_before);
  add_reads(all, positions, hop_before_beyond_the_first, hop_before_beyond_the_first);
  return all;
}

}  // namespace ringlab::verify
