// `ringlab bench cpu`: how near the kernels come to what the processor can do, and to their peers.
#pragma once

#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/command.h"

namespace ringlab::cli {

/// The options of `bench` that `bench cpu` and `bench gpu` alone take.
std::vector<OptionSpec> bench_goal_options();

/// Measures the goals of docs/performance.md, prints a table and writes JSON and a page where asked
/// for. Missing a goal is no failure: the exit code is 0.
int bench_cpu(Arguments& arguments);

}  // namespace ringlab::cli
