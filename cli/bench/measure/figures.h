// What belongs beside the goals, as a table: throughputs, times, the peak they were measured with.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/measure/goal.h"

namespace ringlab::bench {

/// Medians of Outcome::beside, a column for each name that occurs, in the order in which they do;
/// cells are empty where an outcome has no such figure. A column "by" comes first where outcomes
/// have subjects.
struct FigureTable {
  struct Row {
    std::string id;
    std::vector<std::string> cells;
  };
  std::vector<std::string> names;
  std::vector<Row> rows;
};

/// A row for each outcome that has figures.
FigureTable figures_beside(const std::vector<Outcome>& outcomes);

}  // namespace ringlab::bench
