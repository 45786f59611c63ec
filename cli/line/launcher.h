// What a launcher of parallel jobs (mpirun, srun) says about this process through its environment.
#pragma once

#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ringlab::cli {

/// Whether `error`, of the command line `words`, is one that every rank of the job finds before MPI
/// starts, and this rank is not the one to say it. Then this call lasts half a second: launchers
/// end a job as soon as one rank has ended, and the first rank is to be heard before that.
bool first_rank_says_it(const std::vector<std::string>& words, const Error& error);

}  // namespace ringlab::cli
