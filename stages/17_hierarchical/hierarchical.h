// Stage 17, hierarchical: rings inside nodes, so that a chunk comes to each node once.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "stages/16_bidirectional/bidirectional.h"

namespace ringlab::stages::hierarchical {

using bidirectional::Chunk, bidirectional::attend, bidirectional::own_chunk;

inline int wrapped(int number, int count) { return (number % count + count) % count; }

/// Nodes of `width` ranks each, fewer on the last one perhaps.
struct Nodes {
  int ranks = 1, width = 1;
  // [lab: nodes]
  int count() const { return (ranks + width - 1) / width; }
  // [gap: ranks]
  int size(int node) const { return std::min(width, ranks - node * width); }
  int node_of(int rank) const { return rank / width; }
  int number_of(int rank) const { return rank % width; }
  int rank_of(int node, int number) const { return node * width + number; }
  // end [gap: ranks]
  // end [lab: nodes]
};

/// In round n the chunks of the node n behind this one go round here, in blocks of as many as there
/// are ranks here: chunk c enters at rank c mod size, straight from its owner.
template <class Element>
class NodeRing {
 public:
  NodeRing(RankProblem<Element>& r, std::int64_t& held)
      : r_(r),
        nodes_{r.ranks(), std::max(r.options.node_ranks, 1)},
        slots_(bidirectional::make_slots(r, std::min(2, r.ranks() - 1), held)) {}
  int rounds() const { return nodes_.count(); }
  int size() const { return nodes_.size(node()); }
  int chunks(int round) const { return nodes_.size(node(-round)); }

  // [lab: travel]
  /// The own chunk goes to the node `round` ahead, once.
  std::vector<Request> send_own(int round) {
    std::vector<Request> posted;
    const int to = nodes_.rank_of(node(round), number() % nodes_.size(node(round)));
    if (round > 0) bidirectional::post_send(r_, to, own_chunk(r_), posted);
    return posted;
  }

  /// The chunk of this rank at hop `hop` of a block, if it is long enough to have one, and on to
  /// the next rank goes the one of the hop before.
  std::optional<Chunk<Element>> take(int round, int block, int hop) {
    // [gap: inside]
    const int chunk = block + wrapped(number() - way() * hop, size());
    // end [gap: inside]
    const std::optional<Chunk<Element>> before = std::exchange(here_, {});
    std::vector<Request> posted;
    if (round == 0 && hop == 0) {
      here_ = own_chunk(r_);
    } else if (chunk < chunks(round)) {
      ChunkSlot<Element>& slot = slots_[received_++ % slots_.size()];
      slot.owner = nodes_.rank_of(node(-round), chunk);
      bidirectional::post_receive(r_, hop == 0 ? slot.owner : neighbour(-1), slot, posted);
      here_ = {slot.owner, slot.k_values(r_), slot.v_values(r_)};
    }
    if (hop > 0 && before) bidirectional::post_send(r_, neighbour(1), *before, posted);
    for (const Request request : posted) r_.network.wait(request);
    return here_;
  }
  // end [lab: travel]

 private:
  int way() const { return r_.options.direction == RingDirection::next ? 1 : -1; }
  int number() const { return nodes_.number_of(r_.rank()); }
  /// The node so many further on in the direction of travel, and the rank of this node.
  int node(int ahead = 0) const {
    return wrapped(nodes_.node_of(r_.rank()) + way() * ahead, nodes_.count());
  }
  int neighbour(int ahead) const {
    return nodes_.rank_of(node(), wrapped(number() + way() * ahead, size()));
  }

  RankProblem<Element>& r_;
  Nodes nodes_;
  std::vector<ChunkSlot<Element>> slots_;
  std::size_t received_ = 0;
  std::optional<Chunk<Element>> here_;
};

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  std::int64_t held = (r.k.extents.size() + r.v.extents.size()) * std::int64_t{sizeof(Element)};
  NodeRing<Element> ring(r, held);
  r.work.hold_kv(held);
  // [lab: rounds]
  int step = 0;
  for (int round = 0; round < ring.rounds(); ++round) {
    const std::vector<Request> leaving = ring.send_own(round);
    // [gap: blocks]
    for (int block = 0; block < ring.chunks(round); block += ring.size()) {
      for (int hop = 0; hop < ring.size(); ++hop) {
        const std::optional<Chunk<Element>> chunk = ring.take(round, block, hop);
        if (chunk) attend(r, mask, *chunk, step++, running);
      }
    }
    // end [gap: blocks]
    for (const Request request : leaving) r.network.wait(request);
  }
  // end [lab: rounds]
  merge::finish(r, running);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Rings inside nodes: a chunk comes to each node once, and goes round inside it.",
    .costs = hierarchical_costs,
    .schedule = ScheduleKind::double_ring};

}  // namespace ringlab::stages::hierarchical
