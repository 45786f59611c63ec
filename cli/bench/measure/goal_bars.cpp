#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/measure/page.h"
#include "cli/report/svg.h"

namespace ringlab::bench {
namespace {

using report::Svg;

constexpr double kWidth = 360, kLeft = 2, kPlot = kWidth - 72, kBar = 11, kRow = 36, kTop = 6;
constexpr double kSpan = 1.5;  // the axis ends at so many times the target

/// The x coordinate of `value` on an axis in units of the target; its end for values beyond it.
double at(double value, const Goal& goal) {
  const double part = std::isfinite(value) ? value / goal.target / kSpan : 1;
  return kLeft + kPlot * std::clamp(part, 0.0, 1.0);
}

const char* colour(const GoalOutcome& outcome) {
  switch (outcome.verdict()) {
    case GoalVerdict::target:
      return "bar first";
    case GoalVerdict::bound:
      return "bar second";
    default:
      return "bar bad";
  }
}

void draw_row(Svg& svg, const GoalOutcome& outcome, double y) {
  const Goal& goal = outcome.goal;
  const Spread& value = *outcome.value;
  svg.text(kLeft, y + 11, goal.id, "label");
  svg.text(kWidth - 2, y + 11, verdict_text(outcome), "small", "end");
  const double bar = y + 16;
  svg.rect({kLeft, bar, kPlot, kBar}, "track");
  const std::string title = fmt::format(
      "{}: {:.3f} ({:.3f} to {:.3f}); {} {:.2f}, target {:.2f}", goal.what, value.median, value.p10,
      value.p90, goal.sense == Sense::at_least ? "at least" : "at most", goal.bound, goal.target);
  svg.rect({kLeft, bar, at(value.median, goal) - kLeft, kBar}, colour(outcome), "", title);
  svg.line(at(value.p10, goal), bar + kBar / 2, at(value.p90, goal), bar + kBar / 2, "whisker");
  svg.line(at(goal.bound, goal), bar - 3, at(goal.bound, goal), bar + kBar + 3, "bound");
  svg.line(at(goal.target, goal), bar - 3, at(goal.target, goal), bar + kBar + 3, "goal");
  svg.text(kWidth - 2, bar + 9, fmt::format("{:.3f}", value.median), "small number", "end");
}

}  // namespace

std::string goal_bars(const std::vector<GoalOutcome>& outcomes, const std::string& description) {
  const auto rows = std::ranges::count_if(outcomes, [](const GoalOutcome& o) { return !!o.value; });
  Svg svg(kWidth, kTop + kRow * static_cast<double>(rows), description);
  double y = kTop;
  for (const GoalOutcome& outcome : outcomes) {
    if (!outcome.value) continue;
    draw_row(svg, outcome, y);
    y += kRow;
  }
  return svg.finish();
}

std::string_view picture_style() {
  return "svg .whisker { stroke:var(--ink); stroke-width:1.2; }\n"
         "svg .bound { stroke:var(--mark); stroke-width:1.6; stroke-dasharray:3 2; }\n"
         "svg .goal { stroke:var(--mark); stroke-width:1.8; }\n"
         "svg .grid { stroke:var(--line); stroke-width:1; }\n"
         "svg .roof { stroke:var(--soft); stroke-width:1.6; }\n"
         "svg .point { fill:var(--first); } svg .point.small-tile { fill:var(--mark); }\n";
}

}  // namespace ringlab::bench
