// The report of `ringlab bench cpu` or `gpu`: one HTML file that needs nothing from outside.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/cpu/roofline.h"
#include "cli/bench/measure/figures.h"
#include "cli/bench/measure/goal.h"

namespace ringlab::bench {

struct BenchReport {
  std::string title = "How near the kernels come to what the processor can do";
  std::vector<std::pair<std::string, std::string>> configuration = {};
  std::string build = {};  ///< version and compiler, in one line
  std::vector<Outcome> outcomes;
  std::optional<Roofline> roofline = {};
  std::optional<FigureTable> figures = {};
};

/// The whole file.
std::string bench_page(const BenchReport& report);

}  // namespace ringlab::bench
