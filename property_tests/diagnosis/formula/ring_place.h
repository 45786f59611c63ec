// The way by which a chunk comes to a rank, as coordinates: an edit of a ring changes one of them.
#pragma once

#include "reference/core/run.h"

namespace ringlab::verify {

/// The way of a chunk round a ring, two half rings, or rings inside nodes; the own chunk is at
/// distance 0 of way 1, and at hop 0 of round 0.
struct RingPlace {
  int way = 1;       ///< along the direction of travel, or -1: against it
  int distance = 0;  ///< hops on that way
  int round = 0;     ///< nodes further back
  int block = 0;     ///< first number of the block in its owner's node
  int hop = 0;       ///< hops inside the node of the rank
};

/// Rings of a run. Without nodes all ranks are one node.
class RingPlaces {
 public:
  explicit RingPlaces(const RunOptions& options);

  RingPlace of(int rank, int owner) const;
  /// The rank by way and distance from this one.
  int by_distance(int rank, const RingPlace& place) const;
  /// The rank by round, block and hop; -1 where a node has no such rank.
  int by_node(int rank, const RingPlace& place) const;
  /// The largest distance on each way.
  int farthest(int way) const;
  int step() const { return step_; }  ///< 1, or -1 for the previous rank

 private:
  int wrapped(int number, int count) const { return (number % count + count) % count; }
  int node_size(int node) const;

  int ranks_, step_, width_;
  bool both_sides_;
};

}  // namespace ringlab::verify
