// The text and the JSON of `ringlab run`, for a run in this process as for a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/line/output.h"
#include "cli/run/job.h"
#include "cli/run/run_plan.h"

namespace ringlab::cli {

/// Prints the configuration and its notes; `of_job`: the kernels and libraries that a job found.
Json print_plan(const RunPlan& plan, const verify::RunFacts& of_job, Output& output);

/// A table of the ranks, and the same as an array. Times and errors only where they are known.
Json print_ranks(const std::vector<RankReport>& ranks, Output& output);

/// Prints which rows were checked, and how gradients were.
void print_checked_rows(const RunPlan& plan, Json& document, Output& output);

/// ", 3 have no bound and were not checked"; empty for none.
std::string wide_bounds(std::int64_t unbounded);

/// A line for each tensor.
void print_check(const Report& report, Output& output);

/// Prints how many elements the fp64 reference alone could not judge, and the verdict on them.
void print_settlement(const verify::Settlement& settled, Json& document, Output& output);

/// Prints the error of each sum over gradients.
void print_identities(const verify::GradientIdentities& sums, Json& document, Output& output);

}  // namespace ringlab::cli
