// The look of the report.
#pragma once

#include <string_view>

namespace ringlab::report {

/// CSS for light and dark screens, phones and paper.
std::string_view style_sheet();

}  // namespace ringlab::report
