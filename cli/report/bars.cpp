#include "cli/report/bars.h"

#include <algorithm>
#include <cmath>

#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr double kWidth = 360, kPlotLeft = 2, kPlot = kWidth - 72, kBarHeight = 13;
constexpr double kNameHeight = 17, kRowGap = 7, kMarkHeight = 14;

double span_of(const BarChart& chart) {
  double span = chart.least_span;
  for (const Mark& mark : chart.marks) span = std::max(span, mark.value);
  const double limit = chart.marks.empty() ? INFINITY : 2 * span;
  for (const BarRow& row : chart.rows) {
    for (const Bar& bar : row.bars) {
      if (std::isfinite(bar.value)) span = std::max(span, std::min(bar.value, limit));
    }
  }
  return span > 0 ? span : 1;
}

double row_height(const BarRow& row) {
  return kNameHeight + kBarHeight * static_cast<double>(row.bars.size()) + kRowGap;
}

void draw_row(Svg& svg, const BarRow& row, double y, double span) {
  svg.text(kPlotLeft, y + 12, row.name, "label");
  y += kNameHeight;
  for (const Bar& bar : row.bars) {
    const double part = std::isfinite(bar.value) ? std::clamp(bar.value / span, 0.0, 1.0) : 1.0;
    svg.rect({kPlotLeft, y, kPlot, kBarHeight - 2}, "track");
    svg.rect({kPlotLeft, y, std::max(part * kPlot, bar.value > 0 ? 1.0 : 0.0), kBarHeight - 2},
             "bar " + bar.css_class, "", bar.title);
    svg.text(kWidth - 2, y + 9.5, bar.label, "small number", "end");
    y += kBarHeight;
  }
}

}  // namespace

std::string bar_chart(const BarChart& chart) {
  const double top = kMarkHeight * static_cast<double>(chart.marks.size()) + 4;
  double height = top;
  for (const BarRow& row : chart.rows) height += row_height(row);
  const double span = span_of(chart);
  Svg svg(kWidth, height, chart.description);
  double y = top;
  for (const BarRow& row : chart.rows) {
    draw_row(svg, row, y, span);
    y += row_height(row);
  }
  for (std::size_t i = 0; i < chart.marks.size(); ++i) {
    const Mark& mark = chart.marks[i];
    const double x = kPlotLeft + kPlot * mark.value / span;
    const double label_y = kMarkHeight * static_cast<double>(i) + 10;
    svg.line(x, label_y - 9, x, height - kRowGap, "mark");
    const bool left = x > kWidth / 2;
    svg.text(left ? x - 4 : x + 4, label_y, mark.label, "small marklabel", left ? "end" : "start");
  }
  return svg.finish();
}

}  // namespace ringlab::report
