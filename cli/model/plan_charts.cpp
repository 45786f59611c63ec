#include "cli/model/plan_charts.h"

#include <fmt/format.h>

#include "cli/model/charts.h"
#include "cli/model/model_options.h"
#include "cli/model/plan_reasons.h"

namespace ringlab::cli {
namespace {

std::string in_words(const RunOptions& way) {
  std::string words =
      fmt::format("{} {}", layout_name(way.layout), schedule_name(schedule_spec(way)));
  if (!schedule_traits(way.schedule).holds_all) words += fmt::format(", slots {}", way.slots);
  return words;
}

}  // namespace

Json drawn_plan(const model::Job& job, const model::Machine& machine,
                const model::PlanLimits& limits, const model::Choice& choice) {
  Json drawn = job_lanes(job, machine, "All passes");
  drawn["charts"] = Json::array();
  if (choice.options.ranks == 1) return drawn;
  drawn["charts"].push_back(links_chart("time", [&](double times) {
    const WhatIf what = with_other_links(job, machine, choice, limits, largest_memory, times);
    return AtLinks{what.seconds, what.best.seconds, what.same ? "" : in_words(what.best.options)};
  }));
  return drawn;
}

}  // namespace ringlab::cli
