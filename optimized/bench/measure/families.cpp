#include "optimized/bench/measure/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

std::vector<Goal> goals_of(const GoalFamily& family, const std::vector<Goal>& wanted) {
  std::vector<Goal> goals;
  for (const Goal& goal : wanted) {
    if (std::ranges::count(family.ids, family_of(goal))) goals.push_back(goal);
  }
  return goals;
}

/// An environment error skips the goals of its family and does not end the run.
Findings measure_or_skip(const GoalFamily& family, const Plan& plan) {
  Findings found, none;
  const std::string failure = failure_of([&] { found = family.measure(plan); });
  if (failure.empty()) return found;
  for (const Goal& goal : plan.goals) none.skip(goal.id, failure);
  return none;
}

void add_outcomes(const std::vector<Goal>& goals, const Findings& findings,
                  std::vector<GoalOutcome>& outcomes) {
  for (const Goal& goal : goals) {
    const auto found = findings.found.find(goal.id);
    GoalOutcome outcome = found == findings.found.end() ? GoalOutcome{} : found->second;
    outcome.goal = goal;
    if (!outcome.value && outcome.reason.empty()) outcome.reason = "was not measured";
    outcomes.push_back(std::move(outcome));
  }
}

/// Filters `goals` to those that have findings.
std::vector<Goal> goals_in(const Findings& findings, const std::vector<Goal>& goals) {
  std::vector<Goal> known;
  std::ranges::copy_if(goals, std::back_inserter(known),
                       [&](const Goal& goal) { return findings.found.contains(goal.id); });
  return known;
}

}  // namespace

const std::vector<GoalFamily>& cpu_families() {
  static const std::vector<GoalFamily> families = {
      {{"C1", "C2"}, "forward kernel, share of peak", 4, measure_shares},
      {{"C3"}, "forward kernel, best sgemm", 16, measure_against_sgemm},
      {{"C4"}, "bf16 kernel, share of peak", 4, measure_shares},
      {{"C5"}, "fp64 reference", 6, measure_reference},
      {{"C6"}, "backward kernel, share of peak", 10, measure_shares},
      {{"C7"}, "ring, one shot", 8, measure_ring},
      {{"C8"}, "PyTorch", 60, measure_against_torch},
      {{"C9"}, "two threads, one", 8, measure_scaling},
      {{"C10"}, "memory of a rank", 1, measure_memory},
      {{"C11"}, "decoding, share of bandwidth", 4, measure_decoding},
  };
  return families;
}

bool Plan::wants(const std::string& id) const {
  return std::ranges::any_of(goals, [&](const Goal& goal) { return goal.id == id; });
}

void Plan::find(const std::string& id, Findings& findings,
                const std::function<void()>& work) const {
  const std::string failure = failure_of(work);
  if (!failure.empty()) findings.skip(id, failure);
  keep(findings);
}

Findings Plan::for_each(const GoalWork& work) const {
  Findings findings;
  for (std::size_t i = 0; i < goals.size(); ++i) {
    const TimingOptions options = timing(static_cast<int>(i), static_cast<int>(goals.size()));
    find(goals[i].id, findings, [&] { work(goals[i], options, findings); });
  }
  return findings;
}

void check_cores(int cores) {
  const unsigned here = std::thread::hardware_concurrency();
  if (here >= static_cast<unsigned>(cores)) return;
  throw_environment_error({.where = "ringlab_goals cpu",
                           .expected = fmt::format("{} cores", cores),
                           .actual = fmt::format("{}", here)});
}

TimingOptions Plan::timing(int part, int parts) const {
  return {rounds, [this, part, parts](int done, int total) {
            report((part + static_cast<double>(done) / total) / parts);
          }};
}

std::vector<GoalOutcome> measure(const Plan& plan, const MeasureProgress& progress,
                                 const std::vector<GoalFamily>& families, const MeasureKeep& keep) {
  std::vector<std::pair<const GoalFamily*, std::vector<Goal>>> wanted;
  double total = 0, done = 0;
  for (const GoalFamily& family : families) {
    wanted.emplace_back(&family, goals_of(family, plan.goals));
    if (!wanted.back().second.empty()) total += family.weight;
  }
  std::vector<GoalOutcome> outcomes;
  for (const auto& [family, goals] : wanted) {
    if (goals.empty()) continue;
    Plan part = plan;
    part.goals = goals;
    part.progress = [&, weight = family->weight, title = family->title](double share) {
      progress((done + weight * share) / total, title);
    };
    part.found = [&, &of_family = goals](const Findings& findings) {
      if (!keep) return;
      std::vector<GoalOutcome> so_far = outcomes;
      add_outcomes(goals_in(findings, of_family), findings, so_far);
      keep(so_far);
    };
    part.report(0);
    add_outcomes(goals, measure_or_skip(*family, part), outcomes);
    if (keep) keep(outcomes);
    done += family->weight;
  }
  return outcomes;
}

}  // namespace ringlab::bench
