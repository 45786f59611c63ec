// `ringlab run optimized --transport mpi`: this process is one rank of a job that mpirun started.
#pragma once

#include "cli/arguments.h"

namespace ringlab::cli {

/// Whether the command line asks for it.
bool wants_mpi(Arguments& arguments);

/// Reads this rank's rows, runs the engine, writes this rank's rows; rank 0 prints. Prints its own
/// errors, while the other ranks still listen, and returns the exit code: a mistake in the command
/// line is the same on all ranks and printed by rank 0 alone.
int run_mpi(Arguments& arguments);

}  // namespace ringlab::cli
