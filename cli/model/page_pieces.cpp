#include "cli/model/page_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/html.h"
#include "cli/report/trace/trace_page.h"
#include "reference/model/many_ranks.h"

namespace ringlab::cli {
namespace {

constexpr int kMostLanes = 8;

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

std::string job_lanes(const model::Job& job, const model::Machine& machine,
                      const std::string& what) {
  const model::Job seen = looked_at(job);
  const model::JobTimes times =
      model::simulate_job(seen, model::needs_of(seen.problem, seen.options), machine);
  return report::trace_figure(
      times.events, report::summarize(times.events),
      fmt::format("{}, on {} of {} ranks.", what, seen.options.ranks, job.options.ranks));
}

}  // namespace ringlab::cli
