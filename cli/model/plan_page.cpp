#include "cli/model/plan_page.h"

#include <fmt/format.h>

#include "cli/model/model_options.h"
#include "cli/model/page_pieces.h"
#include "cli/model/plan_reasons.h"
#include "cli/report/html.h"
#include "cli/report/human.h"
#include "cli/report/trace/trace_page.h"

namespace ringlab::cli {
namespace {

std::string in_words(const RunOptions& way) {
  std::string words =
      fmt::format("{} {}", layout_name(way.layout), schedule_name(schedule_spec(way)));
  if (!schedule_traits(way.schedule).holds_all) words += fmt::format(", slots {}", way.slots);
  return words;
}

report::BarChart efficiency_chart(const DrawnPlan& plan) {
  report::BarChart chart{
      .description = "efficiency by the number of ranks", .rows = {}, .marks = {}, .least_span = 1};
  for (const model::Choice& best : plan.by_ranks) {
    chart.rows.push_back({fmt::format("{} ranks: {}, {}", best.options.ranks,
                                      report::human_seconds(best.seconds), in_words(best.options)),
                          {{best.efficiency, report::human_percent(best.efficiency),
                            plan.limits.hold(best) ? "first" : "bad", ""}}});
  }
  return chart;
}

}  // namespace

std::string plan_page(const DrawnPlan& plan) {
  const Shape& shape = plan.job.problem.shape;
  std::string body = fmt::format("<h1>Attention on {} {}</h1>\n", plan.choice.options.ranks,
                                 report::escape(plan.machine.name));
  body += report::chips({{"tokens", report::human_count(shape.q_tokens)},
                         {"mask", plan.job.problem.mask.text()},
                         {"time", report::human_seconds(plan.choice.seconds)},
                         {"efficiency", report::human_percent(plan.choice.efficiency)},
                         {"memory of a rank", report::human_bytes(plan.choice.memory_bytes)}});
  body += "<p><code>" + report::escape(plan.words) + "</code></p>\n<div class=\"cards\">\n";
  body += chart_figure("More ranks", "efficiency", efficiency_chart(plan),
                       "The best way of each number of ranks. Red does not keep the limits.");
  if (plan.choice.options.ranks > 1) {
    body += links_figure("time", [&](double times) {
      const WhatIf what =
          with_other_links(plan.job, plan.machine, plan.choice, plan.limits, largest_memory, times);
      return AtLinks{what.seconds, what.best.seconds, what.same ? "" : in_words(what.best.options)};
    });
  }
  body += "</div>\n<h2>The ring</h2>\n" + job_lanes(plan.job, plan.machine, "All passes");
  return report::html_page(
      {.title = "ringlab plan", .body = body, .more_style = report::trace_style()});
}

}  // namespace ringlab::cli
