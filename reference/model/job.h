// All passes of a run on a machine, from the options that a run takes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/core/problem.h"
#include "reference/core/run.h"
#include "reference/model/simulation.h"

namespace ringlab::model {

/// A run to be simulated: of `options` the ranks, layouts, schedule, slots, direction and wire
/// count.
struct Job {
  Problem problem;
  RunOptions options = {};
  std::vector<Pass> passes = {Pass::forward};  ///< one after the other
};

/// The pairs and tokens of the ranks of a job. O(ranks · queries) at worst (Mask::count); errors as
/// make_layout().
struct JobNeeds {
  NeedMatrix need;
  std::vector<std::int64_t> tokens;  ///< of each owner's chunk
};
JobNeeds needs_of(const Problem& problem, const RunOptions& options);

/// The most bytes that a rank of a job holds.
using MemoryOf = std::function<std::int64_t(const Job&, const JobNeeds&)>;

struct JobTimes {
  std::vector<RankTimes> ranks = {};  ///< sums over all passes; ends are those of the last one
  double seconds = 0;
  double one_device_seconds = 0;
  /// Events of all ranks; a pass begins when all ranks have ended the one before.
  std::vector<TraceEvent> events = {};
  /// one_device_seconds, divided by ranks and seconds; 1 where nothing is to be done.
  double efficiency() const;
};

/// All passes on one device, each as one block.
double one_device_seconds(const Job& job, const Machine& machine);

/// Simulates all passes, given the needs_of() its problem and options, which all schedules share.
/// Errors as simulate().
JobTimes simulate_job(const Job& job, const JobNeeds& needs, const Machine& machine,
                      const Disturbance& disturbance = {});

}  // namespace ringlab::model
