#include "cli/bench/measure/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/html.h"

namespace ringlab::bench {
namespace {

using report::escape;

std::ptrdiff_t count(const std::vector<GoalOutcome>& outcomes, GoalVerdict verdict) {
  return std::ranges::count_if(outcomes,
                               [&](const GoalOutcome& one) { return one.verdict() == verdict; });
}

std::string banner(const std::vector<GoalOutcome>& outcomes) {
  const auto missed = count(outcomes, GoalVerdict::missed);
  return report::verdict_banner(
      missed == 0, missed == 0 ? "✓" : "✗",
      fmt::format("{} at target, {} at what is asked for at least, {} missed, {} skipped",
                  count(outcomes, GoalVerdict::target), count(outcomes, GoalVerdict::bound), missed,
                  count(outcomes, GoalVerdict::skipped)));
}

/// One card for each family that has values.
std::string goal_cards(const std::vector<GoalOutcome>& outcomes) {
  std::string html = "<div class=\"cards\">\n";
  std::vector<std::string> families;
  for (const GoalOutcome& one : outcomes) {
    const std::string family = family_of(one.goal);
    if (families.empty() || families.back() != family) families.push_back(family);
  }
  for (const std::string& family : families) {
    std::vector<GoalOutcome> measured;
    for (const GoalOutcome& one : outcomes) {
      if (family_of(one.goal) == family && one.value) measured.push_back(one);
    }
    if (measured.empty()) continue;
    html += fmt::format("<figure><header><h3>{}</h3></header>{}</figure>\n", escape(family),
                        goal_bars(measured, "Goals of " + family + ": values over targets"));
  }
  return html + "</div>\n";
}

std::string beside_text(const GoalOutcome& outcome) {
  std::string text;
  for (const auto& [name, value] : outcome.beside) {
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", name, value.median);
  }
  if (outcome.value && !outcome.reason.empty()) {
    text += (text.empty() ? "" : "; ") + std::string("left out: ") + outcome.reason;
  }
  return text;
}

std::string goal_row(const GoalOutcome& outcome) {
  const Goal& goal = outcome.goal;
  const bool at_most = goal.sense == Sense::at_most;
  std::string row = fmt::format("<tr><td><b>{}</b></td><td>{}", escape(goal.id), escape(goal.what));
  const std::string beside = beside_text(outcome);
  if (!beside.empty()) row += fmt::format("<br><span class=\"soft\">{}</span>", escape(beside));
  if (!outcome.value) {
    return row + fmt::format(
                     "<br><span class=\"skipped\">skipped: {}</span></td>"
                     "<td></td><td></td><td></td><td>skipped</td></tr>\n",
                     escape(outcome.reason));
  }
  const bool missed = outcome.verdict() == GoalVerdict::missed;
  return row + fmt::format(
                   "</td><td class=\"n\">{:.3f}<br><span class=\"soft\">{:.3f} to "
                   "{:.3f}</span></td><td class=\"n\">{} {:.2f}</td><td class=\"n\">{:.2f}"
                   "</td><td><span class=\"tag {}\">{}</span></td></tr>\n",
                   outcome.value->median, outcome.value->p10, outcome.value->p90,
                   at_most ? "≤" : "≥", goal.bound, goal.target, missed ? "bad" : "good",
                   verdict_text(outcome));
}

std::string goal_table(const std::vector<GoalOutcome>& outcomes) {
  std::string rows;
  for (const GoalOutcome& one : outcomes) rows += goal_row(one);
  return report::html_table(
      {"goal", "what", "#median, p10 to p90", "#asked for", "#target", "reached"}, rows);
}

std::string roofline_section(const Roofline& roofline) {
  return "<h2>Roofline</h2>\n<figure>" + roofline_picture(roofline) +
         "<figcaption>The f32 forward kernel on one thread, head_dim 128 and 64. Bytes are those "
         "moved beyond the first-level cache at least: queries and sums once, K and V once for "
         "every group of queries that shares them.</figcaption></figure>\n";
}

std::string figures_section(const FigureTable& figures) {
  std::vector<std::string> titles = {"goal"};
  for (const std::string& name : figures.names) titles.push_back("#" + name);
  std::string rows;
  for (const FigureTable::Row& row : figures.rows) {
    rows += fmt::format("<tr><td><b>{}</b></td>", escape(row.id));
    for (const std::string& cell : row.cells) {
      rows += fmt::format("<td class=\"n\">{}</td>", escape(cell));
    }
    rows += "</tr>\n";
  }
  return "<h2>Figures</h2>\n" + report::html_table(titles, rows);
}

}  // namespace

std::string bench_page(const BenchReport& report) {
  std::string body = fmt::format("<h1>{}</h1>\n", escape(report.title));
  body += banner(report.outcomes) + report::chips(report.configuration);
  body += "<h2>Goals</h2>\n" + goal_cards(report.outcomes);
  body +=
      "<p class=\"soft\">A bar is the median over the target, the thin line in it reaches from the "
      "10th to the 90th percentile; the dashed mark is what is asked for, the whole one the "
      "target.</p>\n";
  body += goal_table(report.outcomes);
  if (report.figures && !report.figures->rows.empty()) body += figures_section(*report.figures);
  if (report.roofline) body += roofline_section(*report.roofline);
  body += fmt::format("<footer>ringlab {}</footer>\n", escape(report.build));
  return report::html_page({.title = "ringlab bench", .body = body, .more_style = picture_style()});
}

}  // namespace ringlab::bench
