// Runs of thousands of ranks, from runs of some.
#pragma once

#include <functional>

#include "reference/model/job.h"

namespace ringlab::model {

/// The most ranks of a job that is executed as it is: eight nodes.
int most_executed(const Machine& machine);

/// Whether with_ranks() can make it one of other ranks: the mask is made for any length (full, causal,
/// windows), over as many keys as queries.
bool has_any_length(const Job& job);

/// Whether seconds_of_many() continues a line: where it has any length, and more ranks than that.
bool is_continued(const Job& job, const Machine& machine);

/// The same job for so many ranks with chunks as long as before, where it has any length.
Job with_ranks(const Job& job, int ranks);

/// The seconds of so many ranks, given those of any fewer, all with chunks of one length: each rank more
/// adds as much as the one before it, so the line through most / 2 and `most` ranks goes on.
double seconds_on_line(int ranks, int most, const std::function<double(int)>& seconds_of);

/// The seconds of simulate_job(), for any number of ranks in the time of some dozens. With chunks of one
/// length each rank more adds as much as the one before it: four and eight nodes are executed, and
/// the line through both goes on, within 2 % at 256 ranks. Errors as simulate_job().
double seconds_of_many(const Job& job, const Machine& machine);

/// The same with the time of one device and the efficiency. Of ranks that are continued only the number
/// is told: their parts are 0, and there are no events.
JobTimes times_of_many(const Job& job, const Machine& machine);

}  // namespace ringlab::model
