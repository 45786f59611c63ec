// Pieces of pages about what the model says.
#pragma once

#include <string>

#include "cli/report/bars.h"
#include "reference/model/job.h"

namespace ringlab::cli {

/// A chart with a heading, a remark at its right and a caption.
std::string chart_figure(const std::string& heading, const std::string& remark,
                         const report::BarChart& chart, const std::string& caption);

/// What each rank does when, for as many ranks as can be looked at: eight, or two of the job's own nodes,
/// with chunks as long; all ranks where the job has no other length. `what` is the caption's beginning.
std::string job_lanes(const model::Job& job, const model::Machine& machine,
                      const std::string& what);

}  // namespace ringlab::cli
