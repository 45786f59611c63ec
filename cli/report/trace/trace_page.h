// A trace drawn: one lane per rank and kind of work, time to the right.
#pragma once

#include <string>
#include <string_view>

#include "cli/report/trace/trace_summary.h"

namespace ringlab::report {

/// The lanes as an <svg> for a page that has style_sheet() and trace_style().
std::string trace_picture(const Trace& trace, const TraceSummary& summary);
/// trace_picture() with its legend, as a <figure>.
std::string trace_figure(const Trace& trace, const TraceSummary& summary,
                         const std::string& caption);
/// The lanes as a file of their own.
std::string trace_svg_file(const Trace& trace, const TraceSummary& summary);
/// The colours of trace_picture(), on top of style_sheet().
std::string_view trace_style();

/// Picture, legend and tables on one HTML page that needs nothing from outside. `name` is what the
/// trace is called there.
std::string trace_page(const Trace& trace, const TraceSummary& summary, const std::string& name);

/// "83 %", or "none in flight" where there was nothing to hide.
std::string overlap_text(const std::optional<double>& overlap);
/// "rank 3, 1.70 times the median of the others", or "none".
std::string straggler_text(const TraceSummary& summary);
/// "rank 0 to rank 1, p50 2 ms, p99 3 ms", or "none".
std::string slowest_link_text(const TraceSummary& summary);

}  // namespace ringlab::report
