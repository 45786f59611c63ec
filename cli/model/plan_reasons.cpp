#include "cli/model/plan_reasons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "cli/report/human.h"
#include "reference/core/layout.h"
#include "reference/model/many_ranks.h"

namespace ringlab::cli {
namespace {

using model::Choice;

/// A part of a way: its value in words, and whether two ways are alike but for it.
struct Part {
  std::string name;
  std::function<std::string(const RunOptions&)> value;
  std::function<bool(const RunOptions&, const RunOptions&)> alike;
};

bool same_schedule(const RunOptions& a, const RunOptions& b) {
  return a.schedule == b.schedule && a.node_ranks == b.node_ranks;
}

std::vector<Part> what_was_chosen(const RunOptions& chosen) {
  std::vector<Part> parts = {
      {"layout", [](const RunOptions& way) { return std::string(layout_name(way.layout)); },
       [](const RunOptions& a, const RunOptions& b) {
         return same_schedule(a, b) && a.slots == b.slots;
       }},
      {"schedule", [](const RunOptions& way) { return schedule_name(schedule_spec(way)); },
       [](const RunOptions& a, const RunOptions& b) { return a.layout == b.layout; }}};
  if (!schedule_traits(chosen.schedule).holds_all) {
    parts.push_back({"slots", [](const RunOptions& way) { return fmt::format("{}", way.slots); },
                     [](const RunOptions& a, const RunOptions& b) {
                       return a.layout == b.layout && same_schedule(a, b);
                     }});
  }
  return parts;
}

/// The disadvantage of `other` against the chosen way, in words.
std::string cost_of(const Choice& other, const Choice& chosen, const model::PlanLimits& limits) {
  const double times = other.seconds / chosen.seconds;
  if (times > 1 + model::kAsFast) return fmt::format("takes {:.3g} times as long", times);
  if (static_cast<double>(other.memory_bytes) > limits.memory_bytes) {
    return fmt::format("holds {}, which does not fit", report::human_bytes(other.memory_bytes));
  }
  if (other.memory_bytes > chosen.memory_bytes) {
    return fmt::format(
        "is no faster and holds {:.3g} times as much",
        static_cast<double>(other.memory_bytes) / static_cast<double>(chosen.memory_bytes));
  }
  return "is no faster";
}

/// The fastest way for each other value of the part, all else alike, in the order of `ways`.
std::vector<Choice> fastest_others(const std::vector<Choice>& ways, const Choice& chosen,
                                   const Part& part) {
  std::vector<Choice> others;
  for (const Choice& way : ways) {
    const std::string value = part.value(way.options);
    if (value == part.value(chosen.options) || !part.alike(way.options, chosen.options)) continue;
    const auto known = std::ranges::find(
        others, value, [&](const Choice& other) { return part.value(other.options); });
    if (known == others.end()) {
      others.push_back(way);
    } else if (way.seconds < known->seconds) {
      *known = way;
    }
  }
  return others;
}

}  // namespace

std::vector<Reason> reasons_for(const std::vector<Choice>& ways, std::size_t chosen,
                                const model::PlanLimits& limits) {
  std::vector<Reason> reasons;
  const Choice& choice = ways[chosen];
  for (const Part& part : what_was_chosen(choice.options)) {
    const std::string own = part.value(choice.options);
    std::vector<std::string> others;
    for (const Choice& way : fastest_others(ways, choice, part)) {
      others.push_back(part.value(way.options) + " " + cost_of(way, choice, limits));
    }
    if (others.empty()) continue;
    reasons.push_back({part.name, fmt::format("{}: {}", own, fmt::join(others, ", "))});
  }
  return reasons;
}

WhatIf with_other_links(const model::Job& job, const model::Machine& machine, const Choice& choice,
                        const model::PlanLimits& limits, const model::MemoryOf& memory_of,
                        double times) {
  model::Job chosen = job;
  chosen.options = choice.options;
  model::Machine other = machine;
  model::scale_links(other, times);
  const auto ways = model::weigh_ways(chosen, other, memory_of);
  const std::size_t best = model::best_choice(ways, {.memory_bytes = limits.memory_bytes});
  WhatIf what{.change = fmt::format("links {:.3g} times as fast", times),
              .seconds = model::seconds_of_many(chosen, other),
              .best = best < ways.size() ? ways[best] : choice};
  what.same = what.seconds <= what.best.seconds * (1 + model::kAsFast);
  return what;
}

std::vector<WhatIf> what_would_change(const model::Job& job, const model::Machine& machine,
                                      const Choice& choice, const model::PlanLimits& limits,
                                      const model::MemoryOf& memory_of) {
  if (choice.options.ranks == 1) return {};
  model::Job chosen = job;
  chosen.options = choice.options;

  WhatIf links = with_other_links(job, machine, choice, limits, memory_of, 0.5);
  links.change = "links half as fast";
  if (model::is_continued(chosen, machine)) return {links};  // no rank of many is executed alone
  const model::JobNeeds needs = model::needs_of(job.problem, choice.options);
  model::Disturbance one_slow;
  one_slow.slower.assign(static_cast<std::size_t>(choice.options.ranks), 1.0);
  one_slow.slower.front() = 1.1;
  WhatIf slow{.change = "one rank a tenth slower",
              .seconds = model::simulate_job(chosen, needs, machine, one_slow).seconds,
              .best = choice};
  slow.best.seconds = slow.seconds;  // no other way is weighed for that
  return {links, slow};
}

}  // namespace ringlab::cli
