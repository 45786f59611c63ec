// Ways to run a job: every one that the engine has, weighed on a machine.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "reference/model/job.h"

namespace ringlab::model {

/// Layout, schedule and slots for options.ranks, the simplest first: contiguous before zigzag
/// before striped, rings before schedules that hold more, two slots before one and three, and
/// double:W with W + 1 last. double:W only where there are several nodes. One rank has one way.
std::vector<RunOptions> ways_to_run(const RunOptions& options, const Machine& machine);

/// A way with what it costs.
struct Choice {
  RunOptions options = {};
  double seconds = 0;
  double efficiency = 0;
  std::int64_t memory_bytes = 0;  ///< of the fullest rank
};

/// A callback, told how many ways are weighed, and of how many.
using WeighedSoFar = std::function<void(std::size_t weighed, std::size_t all)>;

/// Costs of all ways_to_run(), in their order; of many ranks by the line of
/// many_ranks.h, and none that have no line. Errors as simulate_job().
std::vector<Choice> weigh_ways(const Job& job, const Machine& machine, const MemoryOf& memory_of,
                               const WeighedSoFar& tell = {});

struct PlanLimits {
  double memory_bytes = std::numeric_limits<double>::infinity();
  double seconds = std::numeric_limits<double>::infinity();
  bool hold(const Choice& choice) const {
    return static_cast<double>(choice.memory_bytes) <= memory_bytes && choice.seconds <= seconds;
  }
};

/// Ways whose times are this much apart, relative to the shorter, count as equally fast.
inline constexpr double kAsFast = 0.01;

/// The simplest of the fastest choices that keep the limits, as an index; choices.size() for none.
std::size_t best_choice(const std::vector<Choice>& choices, const PlanLimits& limits);

/// The best_choice() of ways_to_run() on job.options.ranks ranks, memory and time not limited.
/// Errors as suited_to() and simulate_job().
RunOptions fastest_way(const Job& job, const Machine& machine);

}  // namespace ringlab::model
