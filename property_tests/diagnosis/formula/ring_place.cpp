#include "property_tests/diagnosis/formula/ring_place.h"

#include <algorithm>

#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {

RingPlaces::RingPlaces(const RunOptions& options)
    : ranks_(options.ranks),
      step_(options.direction == RingDirection::next ? 1 : -1),
      width_(schedule_traits(options.schedule).has_nodes ? std::max(options.node_ranks, 1)
                                                         : options.ranks),
      both_sides_(schedule_traits(options.schedule).both_sides) {}

int RingPlaces::node_size(int node) const { return std::min(width_, ranks_ - node * width_); }

int RingPlaces::farthest(int way) const {
  if (!both_sides_) return way > 0 ? ranks_ - 1 : 0;
  return way > 0 ? ranks_ / 2 : (ranks_ - 1) / 2;
}

RingPlace RingPlaces::of(int rank, int owner) const {
  RingPlace place;
  place.distance = wrapped(step_ * (rank - owner), ranks_);
  if (place.distance > farthest(1)) {
    place.way = -1;
    place.distance = ranks_ - place.distance;
  }
  const int nodes = (ranks_ + width_ - 1) / width_, size = node_size(rank / width_);
  const int number = owner % width_;
  place.round = wrapped(step_ * (rank / width_ - owner / width_), nodes);
  place.block = number / size * size;
  place.hop = wrapped(step_ * (rank % width_ - (number - place.block)), size);
  return place;
}

int RingPlaces::by_distance(int rank, const RingPlace& place) const {
  return wrapped(rank - step_ * place.way * place.distance, ranks_);
}

int RingPlaces::by_node(int rank, const RingPlace& place) const {
  const int nodes = (ranks_ + width_ - 1) / width_, size = node_size(rank / width_);
  const int node = wrapped(rank / width_ - step_ * place.round, nodes);
  const int number = place.block + wrapped(rank % width_ - step_ * place.hop, size);
  return number < node_size(node) ? node * width_ + number : -1;
}

}  // namespace ringlab::verify
