// What a launcher of parallel jobs (mpirun, srun) says about this process through its environment.
#pragma once

#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::cli {

/// True in a process that mpirun or srun started: what looks like its terminal may be a pipe's end.
bool is_launched();

/// Whether the launcher has said so, or nothing at all.
bool is_first_rank();

/// How many ranks the launcher has started; 1 where there is none, or it does not say.
int launched_ranks();

/// "rank 3: " where the launcher has told this process its number.
std::string rank_prefix();

/// What to say of `error`, of the command line `words`, that is found before MPI starts. Where a
/// launcher has started several ranks, the first one speaks at once, and the others two seconds
/// later, with their number in front: launchers end a job as soon as one rank has ended, so that
/// what all ranks have found is said once, and what only some of them have found is said by them.
std::string said_in_turn(const std::vector<std::string>& words, const Error& error);

}  // namespace ringlab::cli
