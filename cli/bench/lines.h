// Lines of `ringlab bench`, aligned and printed one by one, and as JSON.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cli/bench/contest.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Prints the titles, then a line as soon as it is known.
class BenchTable {
 public:
  BenchTable(const std::vector<verify::Subject>& subjects, Output& output);
  void print(const Contender& contender, const Shape& shape, const BenchLine& line);

 private:
  void print(const std::array<std::string, 13>& cells, const std::string& verdict);

  Output& output_;
  std::array<int, 13> widths_ = {7, 8, 7, 8, 5, 9, 9, 8, 9, 8, 9, 7, 11};
};

Json line_json(const Contender& contender, const Shape& shape, const BenchLine& line);

}  // namespace ringlab::cli
