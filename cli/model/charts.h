// Charts and timelines for pages about answers of the model: what their pictures need besides the
// answer itself.
#pragma once

#include <functional>
#include <string>

#include "cli/line/output.h"
#include "reference/model/job.h"

namespace ringlab::cli {

/// "heading", "remark", "unit" (seconds, bytes or share) of its numbers, "caption", and no "rows".
Json chart_json(const std::string& heading, const std::string& remark, const std::string& unit,
                const std::string& caption);

/// Adds a row: "name", "values", and whether it "fits" what was asked for.
void add_row(Json& chart, const std::string& name, const Json& values, bool fits = true);

/// Seconds of a choice with faster or slower links; `best` names the best one, if it is another.
struct AtLinks {
  double seconds = 0, best_seconds = 0;
  std::string best = {};
};
/// Seconds of `what` with links an eighth to twice as fast, for the choice and the best one then.
Json links_chart(const std::string& what, const std::function<AtLinks(double)>& at_links);

/// The most lanes of a picture, where nodes are small.
inline constexpr int kMostLanes = 8;

/// "events" of `shown` of `all` ranks, and a "caption" that begins with `what`.
Json lanes_json(const std::vector<TraceEvent>& events, const std::string& what, int shown, int all);

/// lanes_json() of a job of no more than eight ranks, or two of its own nodes, with the same chunks;
/// of all ranks where the job has only this length.
Json job_lanes(const model::Job& job, const model::Machine& machine, const std::string& what);

}  // namespace ringlab::cli
