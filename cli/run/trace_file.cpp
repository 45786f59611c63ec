#include "cli/run/trace_file.h"

#include "cli/line/output.h"
#include "cli/report/trace/trace_json.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {

OptionSpec trace_option() {
  return {"trace", "FILE", "write what each rank did when, as JSON; see `ringlab trace`"};
}

std::optional<std::string> take_trace_path(Arguments& arguments, const verify::Subject& subject,
                                           RunOptions& options) {
  std::optional<std::string> path = arguments.take_text("trace");
  if (!path) return path;
  if (!subject.can.traces) {
    throw_usage_error({"--trace", "a subject that records events", subject.name,
                       "The stages record none; try optimized."});
  }
  check_file("trace", *path);
  options.trace = true;
  return path;
}

std::size_t write_trace(const std::string& path, const std::vector<TraceEvent>& events) {
  io::write_file(path, report::trace_json(events));
  return events.size();
}

std::size_t write_trace(const std::string& path, const RunResult& result) {
  std::vector<TraceEvent> events;
  for (const RankStats& rank : result.ranks) {
    events.insert(events.end(), rank.events.begin(), rank.events.end());
  }
  return write_trace(path, events);
}

}  // namespace ringlab::cli
