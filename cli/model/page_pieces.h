// Pieces of pages about answers of the model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/model/plan_parts.h"
#include "cli/report/bars.h"
#include "reference/model/job.h"

namespace ringlab::cli {

/// A chart with a heading, a remark at its right and a caption.
std::string chart_figure(const std::string& heading, const std::string& remark,
                         const report::BarChart& chart, const std::string& caption);

/// Named parts as bars, without empty ones.
report::BarChart parts_chart(const std::string& what, const Parts& parts,
                             const std::function<std::string(double)>& human);

/// Seconds of a choice with faster or slower links; `best` names the best one, if it is another.
struct AtLinks {
  double seconds = 0, best_seconds = 0;
  std::string best = {};
};
/// Seconds of `what` with links an eighth to twice as fast, for the choice and the best one then.
std::string links_figure(const std::string& what, const std::function<AtLinks(double)>& at_links);

/// The timelines of `shown` of `all` ranks. `what` begins the caption.
std::string lanes_figure(const std::vector<TraceEvent>& events, const std::string& what, int shown,
                         int all);

/// The most lanes of a picture, where nodes are small.
inline constexpr int kMostLanes = 8;

/// A timeline of each rank, of a job of no more than eight ranks, or two of its own nodes, with the
/// same chunks; of all ranks where the job has only this length. `what` begins the caption.
std::string job_lanes(const model::Job& job, const model::Machine& machine,
                      const std::string& what);

}  // namespace ringlab::cli
