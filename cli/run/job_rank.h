// One rank of a job: runs the engine, checks and writes its rows, and tells rank 0, which prints.
#pragma once

#include "cli/line/output.h"
#include "cli/run/job_plan.h"

namespace ringlab::cli {

/// Returns the exit code: 1 when any rank is wrong, where that was asked. Rank 0 alone has an
/// `output`. To be called by all ranks.
int run_job_rank(const JobPlan& plan, Output* output, JobSession& session);

}  // namespace ringlab::cli
