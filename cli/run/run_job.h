// `ringlab run optimized --transport mpi|nccl`: this process is one rank of a job, that mpirun
// started or whose ranks meet in a folder.
#pragma once

#include <vector>

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// --rank and --meet, for the list of options.
std::vector<OptionSpec> job_option_specs();

/// Whether the command line asks for it.
bool wants_job(const Arguments& arguments);

/// Reads this rank's rows, runs the engine, writes this rank's rows; rank 0 prints. Prints its own
/// errors, while the other ranks still listen, and returns the exit code: a mistake in the command
/// line is the same on all ranks and printed by rank 0 alone.
int run_job(Arguments& arguments);

}  // namespace ringlab::cli
