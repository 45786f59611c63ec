// Comparing double-double numbers with intervals of many bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/precise/ball.h"
#include "reference/precise/double_double.h"
#include "reference/precise/interval.h"

namespace ringlab::testing {

/// high + low, exactly where they are double-double.
inline precise::Interval value_of(double high, double low) {
  return precise::Interval(high) + precise::Interval(low);
}

/// The largest |x - value| / error seen, 1 when something lay outside.
class Enclosed {
 public:
  void expect(const DoubleDouble& x, const precise::Interval& truth, const char* what) {
    ++compared_;
    if (std::isinf(x.error)) return;
    const precise::Interval off = value_of(x.high, x.low) - truth;
    // The interval is far narrower than the error; the farther end counts.
    const double distance =
        std::max(-mpfr_get_d(off.lower(), MPFR_RNDD), mpfr_get_d(off.upper(), MPFR_RNDU));
    ++bounded_;
    if (distance == 0) return;
    const double ratio = distance / x.error;
    worst_ = std::max(worst_, ratio);
    EXPECT_LE(ratio, 1.0) << what << ": " << x.high << " is off by " << distance << ", promised "
                          << x.error;
  }
  void expect(const precise::Ball& ball, const precise::Interval& truth, const char* what) {
    expect(DoubleDouble{ball.high(), ball.low(), ball.radius()}, truth, what);
  }
  long compared() const { return compared_; }
  long bounded() const { return bounded_; }
  double worst() const { return worst_; }

 private:
  long compared_ = 0, bounded_ = 0;
  double worst_ = 0;
};

}  // namespace ringlab::testing
