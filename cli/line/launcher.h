// Facts that a launcher of parallel jobs (mpirun, srun) tells this process by its environment.
#pragma once

#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::cli {

/// True in a process that mpirun or srun started: what looks like its terminal may be a pipe's end.
bool is_launched();

/// True if the launcher names this process rank 0, or names no rank.
bool is_first_rank();

/// The number of ranks that the launcher has started; 1 without a launcher, or where it is silent.
int launched_ranks();

/// "rank 3: " where the launcher has told this process its number.
std::string rank_prefix();

/// The message for `error`, found in the command line `words` before MPI starts. Where a
/// launcher has started several ranks, the first one speaks at once, and the others two seconds
/// later, with their number in front: launchers end a job as soon as one rank has ended, so that
/// what all ranks have found is said once, and what only some of them have found is said by them.
std::string said_in_turn(const std::vector<std::string>& words, const Error& error);

}  // namespace ringlab::cli
