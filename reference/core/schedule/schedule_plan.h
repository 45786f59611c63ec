// The programs of single ranks, for ranks that need only their own.
#pragma once

#include <memory>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// A plan of all ranks' visits to chunks, in order and with their sources, from which programs are
/// written. Chunks that nobody needs are left out. Each rank visits the chunks it needs in an
/// order that depends on spec.kind, direction and node_ranks only, so that results have the same
/// bits for any number of slots. The own chunk comes first.
///
/// A chunk is passed on by the neighbour that had it just before, if that rank needed it too; else
/// it comes straight from its owner. In the backward pass the sum of a chunk's dK and dV follows
/// the same neighbours, each adding its part, and the last one of such a run sends it home.
class SchedulePlan {
 public:
  /// Usage error for spec.slots < 1 or node_ranks < 1. O(ranks²) in time and memory.
  SchedulePlan(const ScheduleSpec& spec, NeedMatrix need);
  const NeedMatrix& need() const { return need_; }
  /// The program of one rank.
  RankSchedule program(int rank, Pass pass) const;

  struct Visits;

 private:
  ScheduleSpec spec_;
  NeedMatrix need_;
  std::shared_ptr<const Visits> visits_;
};

}  // namespace ringlab
