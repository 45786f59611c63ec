// A trace drawn: one lane per rank and kind of work, time to the right.
#pragma once

#include <string>

#include "cli/report/trace/trace_summary.h"

namespace ringlab::report {

/// The lanes as an SVG file that needs nothing from outside.
std::string trace_svg_file(const Trace& trace, const TraceSummary& summary);

}  // namespace ringlab::report
