// The measurements of `ringlab_goals`, and the options and tables that they share.
#pragma once

#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/machine/record.h"
#include "optimized/bench/gpu/gpu_families.h"
#include "optimized/bench/measure/families.h"
#include "optimized/bench/measure/goal.h"

namespace ringlab::bench {

using cli::Arguments;
using cli::Json;
using cli::OptionSpec;
using cli::Output;
using cli::Record;

/// --quick, --rounds, --only (of `goals`) and --torch-python as a plan.
Plan take_plan(Arguments& arguments, const std::vector<Goal>& goals);
/// The options that take_plan() takes, and --json.
std::vector<OptionSpec> plan_options();
/// Usage error for --only: what `option` measures has no goals.
void refuse_goals_beside(const Arguments& arguments, const std::string& option);
/// Shows a bar on a terminal and keeps the outcomes known so far as "goals" of the record.
std::vector<GoalOutcome> measure_with_progress(const Plan& plan,
                                               const std::vector<GoalFamily>& families,
                                               Record& record);

/// Prints a table of goals, why some were skipped, and a table of the figures beside them.
void print_goals(const std::vector<GoalOutcome>& outcomes, Output& output);

/// Goals of the processor. Missing a goal is no failure: the exit code is 0.
cli::Command cpu_command();

/// Goals of a device. Missing a goal is no failure. Environment error without CUDA or a device.
cli::Command gpu_command();

/// Measures with the rounds and sizes of `plan`, prints a table and finishes the record.
void measure_all_widths(const Plan& plan, Record& record, Output& output);

/// Measures with the rounds and sizes of `plan` and prints a table for each case. "ladders" of the
/// record grow by one after another.
void measure_ladders(const GpuBench& bench, const Plan& plan, Record& record, Output& output);

/// Measures with the rounds and sizes of `plan`, prints a table and writes the machine to `path`,
/// named as the file is. "speeds" of the record grow by one row after another.
void measure_machine(const std::string& path, const GpuBench& bench, const Plan& plan,
                     Record& record, Output& output);

/// Measures with the rounds and sizes of `plan` and prints a table. "overlaps" of the record grow
/// by one row after another.
void measure_overlaps(const GpuBench& bench, const Plan& plan, Record& record, Output& output);

}  // namespace ringlab::bench
