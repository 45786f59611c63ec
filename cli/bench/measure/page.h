// The report of `ringlab bench cpu` or `gpu`: one HTML file that needs nothing from outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench/cpu/roofline.h"
#include "cli/bench/measure/goal.h"

namespace ringlab::bench {

struct BenchReport {
  std::string title = "How near the kernels come to what the processor can do";
  std::vector<std::pair<std::string, std::string>> configuration = {};
  std::string build = {};  ///< version and compiler, in one line
  std::vector<GoalOutcome> outcomes;
  std::optional<Roofline> roofline = {};
  std::optional<FigureTable> figures = {};
};

/// The whole file.
std::string bench_page(const BenchReport& report);

/// A row per goal that has a value: a bar as long as value over target, with marks where the bound
/// and the target are, and a whisker from the 10th to the 90th percentile.
std::string goal_bars(const std::vector<GoalOutcome>& outcomes, const std::string& description);

/// Both axes logarithmic: ceilings, slopes and measured points.
std::string roofline_picture(const Roofline& roofline);

/// CSS rules of the pictures, on top of the report's style sheet.
std::string_view picture_style();

}  // namespace ringlab::bench
