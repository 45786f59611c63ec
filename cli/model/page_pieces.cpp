#include "cli/model/page_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_page.h"
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

std::string chart_figure(const std::string& heading, const std::string& remark,
                         const report::BarChart& chart, const std::string& caption) {
  return report::figure(
      {.heading = heading, .remark = remark, .picture = bar_chart(chart), .caption = caption});
}

report::BarChart parts_chart(const std::string& what, const Parts& parts,
                             const std::function<std::string(double)>& human) {
  report::BarChart chart{.description = what, .rows = {}, .marks = {}};
  for (const auto& [part, amount] : parts) {
    if (amount > 0) chart.rows.push_back({part, {{amount, human(amount), "first", ""}}});
  }
  return chart;
}

std::string links_figure(const std::string& what, const std::function<AtLinks(double)>& at_links) {
  report::BarChart chart{.description = what + " by the speed of links", .rows = {}, .marks = {}};
  for (const double times : {0.125, 0.25, 0.5, 1.0, 2.0}) {
    const AtLinks then = at_links(times);
    report::BarRow row{
        fmt::format("links {:.3g} times as fast", times),
        {{then.seconds, report::human_seconds(then.seconds), "first", "this choice"}}};
    if (!then.best.empty()) {
      row.name += ": best is " + then.best;
      row.bars.push_back({then.best_seconds, report::human_seconds(then.best_seconds), "second",
                          "the best choice then"});
    }
    chart.rows.push_back(row);
  }
  return chart_figure("Other links", what, chart,
                      "This choice, and the best one where it is another.");
}

std::string lanes_figure(const std::vector<TraceEvent>& events, const std::string& what, int shown,
                         int all) {
  return report::trace_figure(events, report::summarize(events),
                              fmt::format("{}, on {} of {} ranks.", what, shown, all));
}

std::string job_lanes(const model::Job& job, const model::Machine& machine,
                      const std::string& what) {
  const model::Job seen = looked_at(job);
  const model::JobTimes times =
      model::simulate_job(seen, model::needs_of(seen.problem, seen.options), machine);
  return lanes_figure(times.events, what, seen.options.ranks, job.options.ranks);
}

}  // namespace ringlab::cli
