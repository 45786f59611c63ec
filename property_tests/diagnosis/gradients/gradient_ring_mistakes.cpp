// Mistakes of gradients that travel: parts lost, doubled, or handed to the wrong rank.
#include <algorithm>
#include <cmath>
#include <limits>

#include "property_tests/diagnosis/gradients/gradient_hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// A rank's part of a chunk's sum of dK and dV.
struct SumShare {
  int rank, owner;
  int hop, hops;    ///< at which the rank computes it, of how many of its hops
  int turn, turns;  ///< the rank's place among those other than the owner that add to the sum
};
using Times = std::function<double(const SumShare&)>;

int place_of(const std::vector<int>& list, int wanted) {
  return static_cast<int>(std::ranges::find(list, wanted) - list.begin());
}

/// Ranks that add to an owner's sum, in the order in which a ring passes it on.
std::vector<int> contributors(const Model& model, const std::vector<std::vector<int>>& visits,
                              int owner) {
  const int ranks = model.trial.options.ranks;
  const int step = model.trial.options.direction == RingDirection::next ? 1 : ranks - 1;
  std::vector<int> order;
  for (int hop = 1; hop < ranks; ++hop) {
    const int rank = (owner + hop * step) % ranks;
    if (std::ranges::count(visits[static_cast<std::size_t>(rank)], owner)) order.push_back(rank);
  }
  return order;
}

/// The sums that lose or double a part.
struct Weighed {
  const char *id, *words;
  bool dq, dk, dv;
};
constexpr Weighed kWeighed[] = {{"", "", false, true, true},
                                {"", "", true, true, true},
                                {"_in_dk", ": dK alone", false, true, false},
                                {"_in_dv", ": dV alone", false, false, true}};

void weigh_parts(GradientModel& m, Visited visited, const Weighed& weighed, const Times& times) {
  const Model& model = m.forward;
  const auto visits = visits_of(model, visited);
  const int ranks = model.trial.options.ranks;
  std::vector<double> factors(static_cast<std::size_t>(ranks * ranks), 1);
  for (int owner = 0; owner < ranks; ++owner) {
    const std::vector<int> order = contributors(model, visits, owner);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& owners = visits[static_cast<std::size_t>(rank)];
      if (!std::ranges::count(owners, owner)) continue;
      factors[static_cast<std::size_t>(rank * ranks + owner)] =
          times({rank, owner, place_of(owners, owner), static_cast<int>(owners.size()),
                 place_of(order, rank), static_cast<int>(order.size())});
    }
  }
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    const double factor =
        factors[static_cast<std::size_t>(model.rank_of_query(i) * ranks + model.rank_of_key(j))];
    if (weighed.dk) m.ds_of_dk(b, h, i, j) *= factor;
    if (weighed.dv) m.p_of_dv(b, h, i, j) *= factor;
    if (weighed.dq) m.ds_of_dq(b, h, i, j) *= factor;
  });
}

void add_parts(std::vector<GradientHypothesis>& all, const Suspect& suspect, const Times& times) {
  for (const Visited visited : {Visited::all, Visited::needed}) {
    for (const Weighed& weighed : kWeighed) {
      all.push_back(in_sums({suspect.id + weighed.id, suspect.what + weighed.words},
                            [=](GradientModel& m) { weigh_parts(m, visited, weighed, times); }));
    }
  }
}

/// Makes the chunk of rank r's keys end up with the gradients of rank r + shift: sums that made one
/// hop too many or too few before they were taken home.
void hand_over(GradientPrediction& prediction, const Model& model, int shift, bool dk = true,
               bool dv = true) {
  const RunOptions& options = model.trial.options;
  const Layout layout = make_layout(options, model.shape().kv_tokens, options.kv_layout);
  const int step = options.direction == RingDirection::next ? shift : -shift;
  std::vector<std::int64_t> from(static_cast<std::size_t>(layout.tokens()), -1);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const int other = (rank + step + layout.ranks()) % layout.ranks();
    const auto mine = layout.positions(rank).to_list(), theirs = layout.positions(other).to_list();
    for (std::size_t at = 0; at < std::min(mine.size(), theirs.size()); ++at) {
      from[static_cast<std::size_t>(mine[at])] = theirs[at];
    }
  }
  const auto move = [&](Tensor<double>& value, Tensor<double>& allowed) {
    const Tensor<double> before = value, room = allowed;
    for_each_index(value.extents(), [&](auto b, auto h, auto j, auto c) {
      const std::int64_t source = from[static_cast<std::size_t>(j)];
      allowed(b, h, j, c) =
          source < 0 ? std::numeric_limits<double>::infinity() : room(b, h, source, c);
      if (source >= 0) value(b, h, j, c) = before(b, h, source, c);
    });
  };
  if (dk) move(prediction.gradients.dk, prediction.allowed.dk);
  if (dv) move(prediction.gradients.dv, prediction.allowed.dv);
}

/// Adds what a rank finds for a chunk to its own one, row by row: sums that never travel.
void keep_sums(GradientModel& m) {
  const Chunks chunks(key_layout(m.forward));
  const int ranks = m.forward.trial.options.ranks;
  for (std::int64_t j = 0; j < m.forward.shape().kv_tokens; ++j) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& own = chunks.of(rank);
      const bool fits = own.size() == chunks.of(m.forward.rank_of_key(j)).size();
      m.added_to.push_back(fits ? own[chunks.row_of(j)] : -1);
    }
  }
}

/// Adds the own part to the sums of the next chunk, row by row: sums that begin their way a hop late.
void add_own_to_the_next(GradientModel& m) {
  const Chunks chunks(key_layout(m.forward));
  const RunOptions& options = m.forward.trial.options;
  const int step = options.direction == RingDirection::next ? options.ranks - 1 : 1;
  for (std::int64_t j = 0; j < m.forward.shape().kv_tokens; ++j) {
    const int owner = m.forward.rank_of_key(j);
    const auto& next = chunks.of((owner + step) % options.ranks);
    const bool fits = chunks.row_of(j) < next.size();
    for (int rank = 0; rank < options.ranks; ++rank) {
      m.added_to.push_back(rank != owner ? j : fits ? next[chunks.row_of(j)] : -1);
    }
  }
}

/// Lets the first two shards change places, as when gradients are gathered by arrival.
void swap_two_shards(GradientPrediction& prediction, const Model& model) {
  const RunOptions& options = model.trial.options;
  if (options.ranks < 2) return;
  const Layout layout = make_layout(options, model.shape().kv_tokens, options.kv_layout);
  const auto first = layout.positions(0).to_list(), second = layout.positions(1).to_list();
  for (Tensor<double>* x : {&prediction.gradients.dk, &prediction.gradients.dv,
                            &prediction.allowed.dk, &prediction.allowed.dv}) {
    const Tensor<double> before = *x;
    for_each_index(x->extents(), [&](auto b, auto h, auto at, auto c) {
      const auto row = static_cast<std::size_t>(at);
      if (row >= first.size() || row >= second.size()) return;
      (*x)(b, h, first[row], c) = before(b, h, second[row], c);
      (*x)(b, h, second[row], c) = before(b, h, first[row], c);
    });
  }
}

/// K and V of other ranks narrowed on their way, in the backward pass alone.
GradientHypothesis backward_wire(DType dtype) {
  const std::string name(dtype_info(dtype).name);
  return before_ds({"backward.wire_rounded_to_" + name,
                    "K and V are rounded to " + name + " between ranks, in the backward pass only"},
                   [=](GradientModel& m) {
                     const auto rounded = [=](double x, auto...) { return round_to(dtype, x); };
                     read_copies(m.forward, rounded, rounded);
                     weigh_again(m);
                   });
}

/// Every hop computes gradients on the own chunk's K and V: the chunk is never received.
void keep_own_rows(GradientModel& m) {
  Model& model = m.forward;
  const Chunks chunks(key_layout(model));
  std::vector<std::uint8_t> wild(model.key_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    const auto& own = chunks.of(model.rank_of_query(i));
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const std::size_t at = chunks.row_of(j);
      wild[model.pair(i, j)] = at >= own.size();
      if (at >= own.size()) continue;  // what lies there was never part of this chunk
      model.key_read[model.pair(i, j)] = model.value_read[model.pair(i, j)] = own[at];
    }
  }
  score_again(model);
  weigh_again(m);
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    if (wild[model.pair(i, j)]) m.p(b, h, i, j) = std::numeric_limits<double>::quiet_NaN();
  });
}

/// P relative to the lse of the chunk alone.
void use_chunk_lse(GradientModel& m) {
  const Model& model = m.forward;
  for_each_index(m.lse.extents(), [&](auto b, auto h, auto i, auto) {
    std::vector<double> sums(static_cast<std::size_t>(model.trial.options.ranks));
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      sums[static_cast<std::size_t>(model.rank_of_key(j))] += m.p(b, h, i, j);
    }
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const double sum = sums[static_cast<std::size_t>(model.rank_of_key(j))];
      if (sum > 0) m.p(b, h, i, j) /= sum;
    }
  });
}

void add_sums(std::vector<GradientHypothesis>& all) {
  add_parts(
      all,
      {"backward.last_part_lost",
       "the chunk that comes last is sent home without this rank's part"},
      [](const SumShare& part) { return part.hop + 1 == part.hops && part.hops > 1 ? 0.0 : 1.0; });
  add_parts(all,
            {"backward.sum_from_elsewhere_lost",
             "what other ranks summed up of dK and dV is not added at home"},
            [](const SumShare& part) { return part.rank == part.owner ? 1.0 : 0.0; });
  add_parts(all,
            {"backward.sum_from_elsewhere_twice",
             "what other ranks summed up of dK and dV is added twice at home"},
            [](const SumShare& part) { return part.rank == part.owner ? 1.0 : 2.0; });
  add_parts(all,
            {"backward.only_last_part_sent",
             "a rank passes on only its own part of dK and dV, not the sum"},
            [](const SumShare& part) {
              return part.rank == part.owner || part.turn + 1 == part.turns ? 1.0 : 0.0;
            });
  add_parts(all,
            {"backward.sums_begun_anew",
             "the sums that come are thrown away: the last rank's part alone comes home"},
            [](const SumShare& part) {
              const bool last = part.turn + 1 == part.turns && part.rank != part.owner;
              return last || part.turns == 0 ? 1.0 : 0.0;
            });
  for (const Visited visited : {Visited::all, Visited::needed}) {
    all.push_back(in_sums({"backward.dq_begun_anew",
                           "dQ is begun anew at each hop: the chunk that comes last alone counts"},
                          [=](GradientModel& m) {
                            weigh_parts(m, visited, {"", "", true, false, false},
                                        [](const SumShare& part) {
                                          return part.hop + 1 == part.hops ? 1.0 : 0.0;
                                        });
                          }));
  }
  all.push_back(in_sums({"backward.sums_never_travel",
                         "sums of dK and dV stay on their rank, whose chunk they are taken for"},
                        keep_sums));
  all.push_back(
      in_sums({"backward.sums_a_hop_late",
               "sums of dK and dV begin their way a hop late: the own part of a chunk ends "
               "up with the rank before its owner"},
              add_own_to_the_next));
  add_parts(
      all,
      {"backward.sums_doubled_on_every_hop", "each sum of dK and dV that arrives counts twice"},
      [](const SumShare& part) {
        return part.rank == part.owner ? 1.0 : std::exp2(part.turns - part.turn);
      });
  add_parts(all, {"backward.own_part_lost", "the owner's own part of dK and dV is lost"},
            [](const SumShare& part) { return part.rank == part.owner ? 0.0 : 1.0; });
}

}  // namespace

std::vector<GradientHypothesis> gradient_ring_mistakes() {
  std::vector<GradientHypothesis> all;
  add_sums(all);
  all.push_back(
      in_results({"backward.one_hop_short",
                  "dK and dV make P - 1 hops, or the own part is added after they were passed on: "
                  "each rank ends up with its neighbour's"},
                 [](GradientPrediction& p, const Model& m) { hand_over(p, m, 1); }));
  for (const bool dk : {true, false}) {
    const std::string of = dk ? "dk" : "dv", name = dk ? "dK" : "dV";
    all.push_back(
        in_results({"backward.one_hop_short_in_" + of,
                    name + " alone is stored before the last hop brings it home"},
                   [=](GradientPrediction& p, const Model& m) { hand_over(p, m, 1, dk, !dk); }));
  }
  all.push_back(in_results(
      {"backward.one_hop_too_far", "dK and dV are handed on once more after they had come home"},
      [](GradientPrediction& p, const Model& m) { hand_over(p, m, -1); }));
  all.push_back(in_results({"backward.shards_of_two_ranks_swapped",
                            "dK and dV of ranks 0 and 1 come back in each other's places"},
                           swap_two_shards));
  all.push_back(in_results(
      {"backward.doubled_on_several_ranks",
       "dK and dV are twice what they should be on several ranks"},
      [](GradientPrediction& p, const Model& m) {
        if (m.trial.options.ranks < 2) return;
        for (Tensor<double>* x : {&p.gradients.dk, &p.gradients.dv, &p.allowed.dk, &p.allowed.dv}) {
          *x = scaled(*x, 2);
        }
      }));
  all.push_back(before_ds({"backward.keys_and_values_stay",
                           "gradients travel, but K and V stay those of the own chunk"},
                          keep_own_rows));
  all.push_back(before_ds({"backward.lse_of_the_chunk",
                           "P is recomputed with the lse of one chunk, not of the whole row"},
                          use_chunk_lse));
  all.push_back(backward_wire(DType::f16));
  all.push_back(backward_wire(DType::bf16));
  return all;
}

}  // namespace ringlab::verify
