// `ringlab run --trace FILE`: the events of a run as a file.
#pragma once

#include <optional>
#include <string>

#include "cli/line/arguments.h"
#include "property_tests/subject.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// `--trace FILE`.
OptionSpec trace_option();

/// The path, where it was given; sets options.trace then. Usage error for a subject that records no
/// events.
std::optional<std::string> take_trace_path(Arguments& arguments, const verify::Subject& subject,
                                           RunOptions& options);

/// Complete or absent. Returns the number of events.
std::size_t write_trace(const std::string& path, const RunResult& result);
std::size_t write_trace(const std::string& path, const std::vector<TraceEvent>& events);

}  // namespace ringlab::cli
