// Closed forms: which rank is before which on the way of a chunk is arithmetic, and all counts are
// sums over (rank, owner) pairs. Nothing here looks at operations.
#include "reference/core/schedule/schedule_costs.h"

#include <algorithm>
#include <string>

#include "reference/core/error.h"
#include "reference/core/schedule/visit_order.h"

namespace ringlab {
namespace {

// The remainder from 0 to ranks - 1, unlike % of negative numbers.
int modulo(int number, int ranks) { return ((number % ranks) + ranks) % ranks; }

/// The rank that meets the chunk of `owner` just before `rank` in nodes of W ranks: chunk number c
/// of a node enters a node of R ranks at its local rank c mod R and goes round from there.
int neighbour_in_node(const ScheduleSpec& spec, int ranks, int rank, int owner, int direction) {
  const int first = rank - rank % spec.node_ranks;
  const int here = std::min(spec.node_ranks, ranks - first);
  const int entry = first + (owner % spec.node_ranks) % here;
  return rank == entry ? owner : first + modulo(rank - first - direction, here);
}

/// The rank that meets the chunk of `owner` just before `rank`, were it needed by all.
int neighbour_of(const ScheduleSpec& spec, int ranks, int rank, int owner) {
  const int direction = spec.direction == RingDirection::next ? 1 : -1;
  switch (spec.kind) {
    case ScheduleKind::broadcast:
    case ScheduleKind::allgather:
    case ScheduleKind::ring:
      break;
    case ScheduleKind::bidirectional:
      // The shorter way round; a chunk halfway comes in the ring's own direction.
      if (2 * modulo(direction * (rank - owner), ranks) > ranks) {
        return modulo(rank + direction, ranks);
      }
      break;
    case ScheduleKind::double_ring:
      return neighbour_in_node(spec, ranks, rank, owner, direction);
  }
  return modulo(rank - direction, ranks);
}

void count(ChunkTraffic& traffic, std::int64_t tokens) {
  ++traffic.chunks;
  traffic.tokens += tokens;
}

/// The way of one owner's chunk: ranks that compute on it, each with the rank before it.
class Way {
 public:
  Way(const ScheduleSpec& spec, const NeedMatrix& need, int owner)
      : owner_(owner), before_(static_cast<std::size_t>(need.ranks()), kNobody) {
    for (int rank = 0; rank < need.ranks(); ++rank) {
      if (rank == owner || !need.needs(rank, owner)) continue;
      const int neighbour = neighbour_of(spec, need.ranks(), rank, owner);
      // The rule of decision 8, said once more from arithmetic: builder and
      // closed forms agree in tests.
      const bool passed_on = neighbour != owner && need.needs(neighbour, owner);
      at(rank) = passed_on ? neighbour : owner;
    }
  }
  int ranks() const { return static_cast<int>(before_.size()); }
  bool visits(int rank) const { return before_[static_cast<std::size_t>(rank)] != kNobody; }
  /// The owner where a run of passing on begins.
  int before(int rank) const { return before_[static_cast<std::size_t>(rank)]; }
  bool continues_a_run(int rank) const { return visits(rank) && before(rank) != owner_; }
  /// The most ranks that a run of passing on has.
  int longest_run() const {
    std::vector<bool> passes_on(before_.size());
    // A rank that nobody comes after is the last of its run; runs are
    // walked from there to the owner.
    for (int rank = 0; rank < ranks(); ++rank) {
      if (visits(rank)) passes_on[static_cast<std::size_t>(before(rank))] = true;
    }
    int longest = 0;
    for (int last = 0; last < ranks(); ++last) {
      if (!visits(last) || passes_on[static_cast<std::size_t>(last)]) continue;
      int length = 1;
      for (int rank = last; continues_a_run(rank); rank = before(rank)) ++length;
      longest = std::max(longest, length);
    }
    return longest;
  }

 private:
  int& at(int rank) { return before_[static_cast<std::size_t>(rank)]; }
  int owner_;
  std::vector<int> before_;
};

bool owners_send_to_all(const ScheduleSpec& spec) {
  const ScheduleTraits traits = schedule_traits(spec.kind);
  return traits.from_owners || (spec.slots == 1 && !traits.holds_all);
}

/// Counts sums of gradients: one leaves each visitor, to the next rank of the run, or home from the
/// last one, of which each run has one.
void count_gradients(const Way& way, int owner, std::int64_t tokens, ScheduleCosts& costs) {
  for (int rank = 0; rank < way.ranks(); ++rank) {
    if (!way.visits(rank)) continue;
    RankCosts& visitor = costs.ranks[static_cast<std::size_t>(rank)];
    RankCosts& home = costs.ranks[static_cast<std::size_t>(owner)];
    count(visitor.gradients_sent, tokens);
    count((way.continues_a_run(rank) ? visitor : home).gradients_received, tokens);
  }
}

void count_chunks(const Way& way, bool direct, int owner, std::int64_t tokens,
                  ScheduleCosts& costs) {
  for (int rank = 0; rank < way.ranks(); ++rank) {
    if (!way.visits(rank)) continue;
    const int source = direct ? owner : way.before(rank);
    count(costs.ranks[static_cast<std::size_t>(rank)].kv_received, tokens);
    count(costs.ranks[static_cast<std::size_t>(source)].kv_sent, tokens);
  }
  const int length = way.longest_run();
  // Straight from owners every chunk makes one hop.
  costs.hops = std::max(costs.hops, direct ? std::min(1, length) : length);
}

int slots_of(const ScheduleSpec& spec, int visits) {
  const ScheduleTraits traits = schedule_traits(spec.kind);
  const int sides = traits.both_sides && spec.slots > 1 ? 2 : 1;
  return traits.holds_all ? visits : std::min(spec.slots * sides, visits);
}

/// Contributions take turns in slots 0 and 1, arriving sums in 2 and 3, and each sum that comes
/// home has one from 4 on; step 1 takes the second turn. `ways` are those of all owners.
int gradient_slots_of(const ScheduleSpec& spec, const std::vector<Way>& ways, int rank) {
  const Way& own = ways[static_cast<std::size_t>(rank)];
  int home = 0;
  for (int other = 0; other < own.ranks(); ++other) {
    if (own.visits(other) && !own.continues_a_run(other)) ++home;
  }
  // Home sums take the slots from 4 on, whatever the others use.
  if (home > 0) return 4 + home;
  int slots = 0;
  int step = 0;
  for (const Stop& stop : visit_order(spec, own.ranks(), rank)) {
    const Way& way = ways[static_cast<std::size_t>(stop.owner)];
    if (!way.visits(rank)) continue;
    ++step;
    slots = std::max(slots, (way.continues_a_run(rank) ? 3 : 1) + step % 2);
  }
  return slots;
}

void check(const ScheduleSpec& spec, const NeedMatrix& need,
           const std::vector<std::int64_t>& tokens) {
  if (spec.slots < 1 || spec.node_ranks < 1) {
    throw_usage_error({.where = "schedule_costs",
                       .expected = "1 or more slots and ranks per node",
                       .actual = std::to_string(spec.slots) + " slots, " +
                                 std::to_string(spec.node_ranks) + " ranks"});
  }
  if (tokens.size() == static_cast<std::size_t>(need.ranks())) return;
  throw_usage_error({.where = "schedule_costs",
                     .expected = std::to_string(need.ranks()) + " chunk lengths",
                     .actual = std::to_string(tokens.size())});
}

}  // namespace

ScheduleCosts schedule_costs(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass,
                             const std::vector<std::int64_t>& tokens) {
  check(spec, need, tokens);
  ScheduleCosts costs{.ranks = std::vector<RankCosts>(tokens.size()), .hops = 0};
  std::vector<Way> ways;
  for (int owner = 0; owner < need.ranks(); ++owner) {
    const std::int64_t length = tokens[static_cast<std::size_t>(owner)];
    const Way& way = ways.emplace_back(spec, need, owner);
    count_chunks(way, owners_send_to_all(spec), owner, length, costs);
    if (pass == Pass::backward) count_gradients(way, owner, length, costs);
  }
  for (int rank = 0; rank < need.ranks(); ++rank) {
    RankCosts& here = costs.ranks[static_cast<std::size_t>(rank)];
    here.slots = slots_of(spec, static_cast<int>(here.kv_received.chunks));
    if (pass == Pass::backward) here.gradient_slots = gradient_slots_of(spec, ways, rank);
  }
  return costs;
}

}  // namespace ringlab
