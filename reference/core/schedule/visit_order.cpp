#include "reference/core/schedule/visit_order.h"

#include <algorithm>

namespace ringlab {
namespace {

int wrapped(int number, int ranks) { return ((number % ranks) + ranks) % ranks; }

/// The chunk that started `distance` ranks upstream.
Stop upstream(int rank, int ranks, int distance, int step) {
  return {.owner = wrapped(rank - step * distance, ranks),
          .neighbour = wrapped(rank - step, ranks)};
}

std::vector<Stop> one_way(int ranks, int rank, RingDirection direction) {
  const int step = direction == RingDirection::next ? 1 : -1;
  std::vector<Stop> stops;
  for (int distance = 1; distance < ranks; ++distance) {
    stops.push_back(upstream(rank, ranks, distance, step));
  }
  return stops;
}

/// For even P the chunk half way round comes one way only.
std::vector<Stop> both_ways(int ranks, int rank, RingDirection direction) {
  const int step = direction == RingDirection::next ? 1 : -1;
  std::vector<Stop> stops;
  for (int distance = 1; 2 * distance <= ranks; ++distance) {
    stops.push_back(upstream(rank, ranks, distance, step));
    if (2 * distance < ranks) stops.push_back(upstream(rank, ranks, distance, -step));
  }
  return stops;
}

/// Ranks first … first+ranks-1.
struct RankNode {
  int first = 0;
  int ranks = 0;
};
RankNode node_of(int node, int node_ranks, int ranks) {
  const int first = node * node_ranks;
  return {first, std::min(node_ranks, ranks - first)};
}

/// The chunks of another node come in blocks as large as this one: chunk b·R + l enters at local
/// rank l and then goes round, so that each block is a ring of its own.
void visit_node(const RankNode& from, const RankNode& here, int rank, int step,
                std::vector<Stop>& stops) {
  const int local = rank - here.first;
  for (int block = 0; block < from.ranks; block += here.ranks) {
    for (int distance = 0; distance < here.ranks; ++distance) {
      const int chunk = block + wrapped(local - step * distance, here.ranks);
      if (chunk >= from.ranks) continue;
      const int owner = from.first + chunk;
      if (owner == rank) continue;
      const int before = here.first + wrapped(local - step, here.ranks);
      stops.push_back({.owner = owner, .neighbour = distance == 0 ? owner : before});
    }
  }
}

std::vector<Stop> nodes_of_rings(const ScheduleSpec& spec, int ranks, int rank) {
  const int step = spec.direction == RingDirection::next ? 1 : -1;
  const int nodes = (ranks + spec.node_ranks - 1) / spec.node_ranks;
  const int own = rank / spec.node_ranks;
  const RankNode here = node_of(own, spec.node_ranks, ranks);
  std::vector<Stop> stops;
  for (int round = 0; round < nodes; ++round) {
    const RankNode from = node_of(wrapped(own - step * round, nodes), spec.node_ranks, ranks);
    visit_node(from, here, rank, step, stops);
  }
  return stops;
}

}  // namespace

std::vector<Stop> visit_order(const ScheduleSpec& spec, int ranks, int rank) {
  switch (spec.kind) {
    case ScheduleKind::bidirectional:
      return both_ways(ranks, rank, spec.direction);
    case ScheduleKind::double_ring:
      return nodes_of_rings(spec, ranks, rank);
    case ScheduleKind::broadcast:
    case ScheduleKind::allgather:
    case ScheduleKind::ring:
      return one_way(ranks, rank, spec.direction);
  }
  return {};
}

}  // namespace ringlab
