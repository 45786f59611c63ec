// The costs of a schedule on a machine: who computes, sends and waits when.
//
// The model. Each rank executes its operations in order: posts take no time, computing takes all of
// its device, waits stand still. A message sets out once both ends have posted it, and messages
// share their ways (network.h). While a rank sends or receives, the machine's transfer_share of its
// computing is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/schedule/schedule.h"
#include "reference/core/schedule/trace.h"
#include "reference/model/machine.h"
#include "reference/model/work.h"

namespace ringlab::model {

/// The blocks that the mask cuts; kernels are slower there, as published figures of causal masks are.
enum class CutBlocks { none, own, all };

/// The work that is asked of the machine.
struct Load {
  const Schedule& schedule;          ///< obeys check_schedule()
  const NeedMatrix& need;            ///< with the pairs of every (rank, owner)
  std::vector<std::int64_t> tokens;  ///< of each owner's chunk
  Work work;                         ///< of the schedule's pass
  CutBlocks cut = CutBlocks::none;
};

/// The causes that keep ranks from being alike.
struct Disturbance {
  std::vector<double> slower = {};  ///< by rank: its blocks take so many times as long; empty: 1
  /// Every block takes 1 + jitter · E times as long, E exponentially distributed with mean 1.
  double jitter = 0;
  std::uint64_t seed = 1;  ///< the same gives the same times
};

/// The parts of a rank's time, which it ends after.
struct RankTimes {
  double compute_s = 0;   ///< of attention, with what transfers take from it
  double add_s = 0;       ///< of sums of gradients
  double wait_s = 0;      ///< stood still
  double incoming_s = 0;  ///< messages came in, hidden or not; latencies do not count
  double end_s = 0;
};

struct Simulation {
  std::vector<RankTimes> ranks;
  double seconds = 0;  ///< of the rank that ends last
  /// Events by rank, as a run with --trace records them; check_trace() accepts them.
  std::vector<std::vector<TraceEvent>> events;
};

/// Input errors as check_machine() says; usage error for sizes that do not fit together, and for a
/// schedule in which a rank waits for ever. O(operations · log(ranks)).
Simulation simulate(const Load& load, const Machine& machine, const Disturbance& disturbance = {});

/// The time of so many pairs of so many tokens on one device as one block.
double one_device_seconds(double pairs, double tokens, const Work& work, CutBlocks cut,
                          const Machine& machine);

}  // namespace ringlab::model
