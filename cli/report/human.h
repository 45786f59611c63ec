// Amounts as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::report {

std::string human_bytes(std::int64_t bytes);  ///< "1.5 MiB"
std::string human_seconds(double seconds);    ///< "12.3 ms"
std::string human_ratio(double ratio);        ///< "0.314", "inf"
std::string human_percent(double share);      ///< "12.3 %" of 0.123
std::string human_count(std::int64_t count);  ///< "12 345"
/// Six significant digits in "got …, exact …, allowed …"; more of the first two where they would look
/// alike. Other words stay as they are.
std::string human_finding(const std::string& words);

}  // namespace ringlab::report
