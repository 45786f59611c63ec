// Runs of thousands of ranks, from runs of some.
#pragma once

#include "reference/model/job.h"

namespace ringlab::model {

/// The most ranks of a job that is executed as it is: eight nodes.
int most_executed(const Machine& machine);

/// Whether seconds_of_many() continues a line: where there are more ranks than that, and the mask is
/// made for any length (full, causal, windows), over as many keys as queries.
bool is_continued(const Job& job, const Machine& machine);

/// The same job for so many ranks with chunks as long as before, which is_continued() could be.
Job with_ranks(const Job& job, int ranks);

/// The seconds of simulate_job(), for any number of ranks in the time of some dozens. With chunks of one
/// length each rank more adds as much as the one before it: four and eight nodes are executed, and
/// the line through both goes on, within 2 % at 256 ranks. Errors as simulate_job().
double seconds_of_many(const Job& job, const Machine& machine);

}  // namespace ringlab::model
