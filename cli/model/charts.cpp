#include "cli/model/charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/trace/trace_json.h"
#include "reference/model/many_ranks.h"

namespace ringlab::cli {
namespace {

model::Job looked_at(const model::Job& job) {
  const bool has_nodes = schedule_traits(job.options.schedule).has_nodes;
  const int lanes = std::max(kMostLanes, has_nodes ? 2 * job.options.node_ranks : 0);
  const bool all = job.options.ranks <= lanes || !model::has_any_length(job);
  return all ? job : model::with_ranks(job, lanes);
}

}  // namespace

Json chart_json(const std::string& heading, const std::string& remark, const std::string& unit,
                const std::string& caption) {
  return {{"heading", heading},
          {"remark", remark},
          {"unit", unit},
          {"caption", caption},
          {"rows", Json::array()}};
}

void add_row(Json& chart, const std::string& name, const Json& values, bool fits) {
  chart["rows"].push_back({{"name", name}, {"values", values}, {"fits", fits}});
}

Json links_chart(const std::string& what, const std::function<AtLinks(double)>& at_links) {
  Json chart = chart_json("Other links", what, "seconds",
                          "This choice, and the best one where it is another.");
  for (const double times : {0.125, 0.25, 0.5, 1.0, 2.0}) {
    const AtLinks then = at_links(times);
    const std::string name = fmt::format("links {:.3g} times as fast", times);
    if (then.best.empty()) {
      add_row(chart, name, {then.seconds});
    } else {
      add_row(chart, name + ": best is " + then.best, {then.seconds, then.best_seconds});
    }
  }
  return chart;
}

Json lanes_json(const std::vector<TraceEvent>& events, const std::string& what, int shown,
                int all) {
  return {{"events", report::events_json(events)},
          {"caption", fmt::format("{}, on {} of {} ranks.", what, shown, all)}};
}

Json job_lanes(const model::Job& job, const model::Machine& machine, const std::string& what) {
  const model::Job seen = looked_at(job);
  const model::JobTimes times =
      model::simulate_job(seen, model::needs_of(seen.problem, seen.options), machine);
  return lanes_json(times.events, what, seen.options.ranks, job.options.ranks);
}

}  // namespace ringlab::cli
