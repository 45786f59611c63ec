// The pictures of `ringlab bench cpu`, for a page that has the report's style sheet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/cpu/roofline.h"
#include "cli/bench/measure/goal.h"

namespace ringlab::bench {

/// A row per goal that has a value: a bar as long as value over target, with marks where the bound
/// and the target are, and a whisker from the 10th to the 90th percentile.
std::string goal_bars(const std::vector<Outcome>& outcomes, const std::string& description);

/// Both axes logarithmic: ceilings, slopes and measured points.
std::string roofline_picture(const Roofline& roofline);

/// What the pictures need on top of the report's style sheet.
std::string_view picture_style();

}  // namespace ringlab::bench
