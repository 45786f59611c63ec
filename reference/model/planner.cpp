#include "reference/model/planner.h"

#include <algorithm>
#include <array>

#include "reference/model/many_ranks.h"

namespace ringlab::model {
namespace {

constexpr std::array kLayouts = {LayoutKind::contiguous, LayoutKind::zigzag, LayoutKind::striped};
static_assert(kLayouts.size() == kLayoutKinds.size());

constexpr int kUsualSlots = 3;

/// The slots to try, the usual ones first. With W + 1 a chunk of another node can hide under all
/// steps inside a node of W ranks: it is under way while as many others lie here.
std::vector<int> slots_to_try(const Machine& machine) {
  std::vector<int> slots = {2, 1, kUsualSlots};
  if (machine.node_ranks >= kUsualSlots) slots.push_back(machine.node_ranks + 1);
  return slots;
}

/// Schedules for so many ranks, those first whose memory does not grow with them. Of those that hold
/// all chunks, none whose owners send to everybody: it costs no less than going round.
std::vector<ScheduleSpec> schedules_for(int ranks, const Machine& machine) {
  const bool several_nodes = machine.node_ranks > 1 && ranks > machine.node_ranks;
  std::vector<ScheduleSpec> schedules;
  for (const int slots : slots_to_try(machine)) {
    for (const ScheduleKind kind : kScheduleKinds) {
      const ScheduleTraits traits = schedule_traits(kind);
      if (traits.holds_all || (traits.has_nodes && !several_nodes)) continue;
      if (slots > kUsualSlots && !traits.has_nodes) continue;
      const int node_ranks = traits.has_nodes ? machine.node_ranks : 1;
      schedules.push_back({.kind = kind, .node_ranks = node_ranks, .slots = slots});
    }
  }
  for (const ScheduleKind kind : kScheduleKinds) {
    const ScheduleTraits traits = schedule_traits(kind);
    if (traits.holds_all && !traits.from_owners) schedules.push_back({.kind = kind});
  }
  return schedules;
}

Choice weighed(const Job& job, const JobNeeds& needs, const Machine& machine,
               const MemoryOf& memory_of) {
  const JobTimes times = simulate_job(job, needs, machine);
  return {.options = job.options,
          .seconds = times.seconds,
          .efficiency = times.efficiency(),
          .memory_bytes = memory_of(job, needs)};
}

Choice continued(const Job& job, const Machine& machine, const MemoryOf& memory_of) {
  const JobTimes times = times_of_many(job, machine);
  return {.options = job.options,
          .seconds = times.seconds,
          .efficiency = times.efficiency(),
          .memory_bytes = bytes_of_many(job, machine, memory_of)};
}

}  // namespace

std::vector<RunOptions> ways_to_run(const RunOptions& options, const Machine& machine) {
  std::vector<RunOptions> ways;
  for (const LayoutKind layout : kLayouts) {
    for (const ScheduleSpec& spec : schedules_for(options.ranks, machine)) {
      RunOptions way = options;
      way.layout = layout;
      way.schedule = spec.kind;
      way.node_ranks = spec.node_ranks;
      way.slots = spec.slots;
      ways.push_back(way);
    }
  }
  if (options.ranks == 1) ways.resize(1);
  return ways;
}

std::vector<Choice> weigh_ways(const Job& job, const Machine& machine, const MemoryOf& memory_of,
                               const WeighedSoFar& tell) {
  std::vector<Choice> choices;
  JobNeeds needs{.need = NeedMatrix(0), .tokens = {}};
  const std::vector<RunOptions> ways = ways_to_run(job.options, machine);
  for (const RunOptions& way : ways) {
    if (tell) tell(choices.size(), ways.size());
    const bool same_layout = !choices.empty() && choices.back().options.layout == way.layout;
    const Job candidate{.problem = job.problem, .options = way, .passes = job.passes};
    if (is_continued(candidate, machine)) {
      choices.push_back(continued(candidate, machine, memory_of));
      continue;
    }
    // Leaves out ways without a line, which would take long to execute.
    if (has_any_length(job) && way.ranks > line_of(way.ranks, machine).most) continue;
    if (!same_layout) needs = needs_of(job.problem, way);
    choices.push_back(weighed(candidate, needs, machine, memory_of));
  }
  return choices;
}

std::size_t best_choice(const std::vector<Choice>& choices, const PlanLimits& limits) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    if (limits.hold(choice)) fastest = std::min(fastest, choice.seconds);
  }
  const auto best = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return limits.hold(choice) && choice.seconds <= fastest * (1 + kAsFast);
  });
  return static_cast<std::size_t>(best - choices.begin());
}

RunOptions fastest_way(const Job& job, const Machine& machine) {
  const auto not_counted = [](const Job& /*job*/, const JobNeeds& /*needs*/) {
    return std::int64_t{0};
  };
  const auto choices = weigh_ways(job, suited_to(machine, job.problem), not_counted);
  return choices[best_choice(choices, {})].options;
}

}  // namespace ringlab::model
