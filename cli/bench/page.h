// The report of `ringlab bench cpu`: one HTML file that needs nothing from outside.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/bench/goal.h"
#include "cli/bench/roofline.h"

namespace ringlab::bench {

struct BenchReport {
  std::vector<std::pair<std::string, std::string>> configuration;
  std::string build;  ///< version and compiler, in one line
  std::vector<Outcome> outcomes;
  Roofline roofline;
};

/// The whole file.
std::string bench_page(const BenchReport& report);

}  // namespace ringlab::bench
