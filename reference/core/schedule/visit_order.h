// The order in which each rank meets the chunks of the others, before anything is skipped.
#pragma once

#include <vector>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// The chunk of `owner`, and the rank that meets it just before this one does (the owner itself for
/// the first rank on its way).
struct Stop {
  int owner = 0;
  int neighbour = 0;
};

/// All chunks but the own, in the order in which `rank` meets them. Every order has a label per
/// stop that grows along it and is one larger than the label of the same chunk at `neighbour`
/// (or the neighbour is the owner): that is why no schedule made from it can deadlock.
std::vector<Stop> visit_order(const ScheduleSpec& spec, int ranks, int rank);

}  // namespace ringlab
