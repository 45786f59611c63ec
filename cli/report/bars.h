// Horizontal bars: one row per subject, one or more values each, marks for what is expected.
#pragma once

#include <string>
#include <vector>

namespace ringlab::report {

struct Bar {
  double value = 0;
  std::string label;      ///< the value as text
  std::string css_class;  ///< "first", "second", "bad"
  std::string title;      ///< on hovering
};
struct BarRow {
  std::string name;
  std::vector<Bar> bars;
};
/// A vertical line through all rows.
struct Mark {
  double value = 0;
  std::string label;
};
struct BarChart {
  std::string description;
  std::vector<BarRow> rows;
  std::vector<Mark> marks;
  double least_span = 0;  ///< the axis reaches at least this far
};

/// Values that are not finite, or beyond twice the largest mark where there are marks, reach the
/// right edge; their label tells the number.
std::string bar_chart(const BarChart& chart);

}  // namespace ringlab::report
