// Doubles that tests name.
#pragma once

#include <limits>

namespace ringlab {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace ringlab
