// Repeated measurements in three numbers.
#pragma once

#include <string>
#include <vector>

#include "cli/line/output.h"

namespace ringlab::cli {

/// Median, and the 10th and 90th percentile, of repeated measurements.
struct Spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

/// The spread of one number or more, interpolated between order statistics.
Spread spread_of(std::vector<double> values);

/// "1.234 (1.200 to 1.300)": the median, and from the 10th to the 90th percentile.
std::string spread_text(const Spread& spread, int digits);
Json spread_json(const Spread& spread);

}  // namespace ringlab::cli
