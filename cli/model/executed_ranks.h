// The ranks executed to answer a question about a job: all, or some and the line through them.
#pragma once

#include <string>
#include <vector>

#include "reference/model/job.h"

namespace ringlab::cli {

/// The most ranks that `plan` and `simulate` answer for; a run has fewer.
inline constexpr int kMostModelledRanks = 1 << 17;

/// The part of a job that is executed.
struct ExecutedRanks {
  model::Job job;   ///< the job itself, or one of fewer ranks with chunks as long
  bool all = true;  ///< else times are those of model::times_of_many()
  // If not `all`, `half` and `last` of model::Continuation:
  int half = 0;  ///< the fewer ranks that are executed, too; 0: none
  int last = 0;  ///< where the line ends
};

/// All ranks, up to 256; of more ranks the few that the line of many_ranks.h goes through, where it
/// holds: not for options that ask for each rank, named by `by_rank`, nor for schedules that hold
/// all chunks. Usage error for more than a run's ranks that would all have to be executed.
ExecutedRanks executed_ranks(const model::Job& job, const model::Machine& machine,
                             const std::vector<std::string>& by_rank = {});

}  // namespace ringlab::cli
