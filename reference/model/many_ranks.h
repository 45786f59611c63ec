// Runs of thousands of ranks, from runs of some.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/model/job.h"

namespace ringlab::model {

/// Up to here all ranks are executed in a second or two.
inline constexpr int kQuicklyExecuted = 256;

/// Two numbers of ranks that are executed. A cost that grows as much with each rank more goes on along
/// the line through both.
struct RankLine {
  int half = 0;
  int most = 0;
};

/// Four and eight nodes, of the machine or of the schedule, and no fewer than 16 and 32 ranks: less what
/// makes the last node as full as that of so many ranks.
RankLine line_of(const Job& job, const Machine& machine);
/// The same for rings without nodes of their own.
RankLine line_of(int ranks, const Machine& machine);

/// The cost of so many ranks: as asked for up to the most that are executed, of more along the line.
double on_line(int ranks, const RankLine& line, const std::function<double(int)>& cost_of);

/// Whether with_ranks() can make a job one of other ranks: the mask is made for any length (full, causal,
/// windows), over as many keys as queries.
bool has_any_length(const Job& job);

/// Whether the costs of a job lie on a line: where it has any length, no rank holds all chunks, and windows lie
/// on contiguous chunks, whose neighbours are the same for any number of ranks.
bool has_line(const Job& job);

/// Whether seconds_of_many() continues the line of a job, and does not execute all of its ranks.
bool is_continued(const Job& job, const Machine& machine);

/// How the cost of a job that is_continued() is found: along the line, on to the rank `last`, or, where
/// line.half is 0, by a run of line.most ranks alone, which a window does not reach across.
struct Continuation {
  RankLine line;
  int last = 0;
};
Continuation continuation_of(const Job& job, const Machine& machine);

/// The same job for so many ranks with chunks as long as before, where it has any length.
Job with_ranks(const Job& job, int ranks);

/// The seconds of simulate_job(), for any number of ranks in the time of some dozens. Of 256 ranks, what
/// is executed and what is continued differ by 2 % at most; by 8 % where nodes have a schedule of
/// their own and the last one is not full, by 9 % where they have one and the mask has windows. More
/// ranks than a window reaches add nothing: as many are executed, where that is quick. Errors as
/// simulate_job().
double seconds_of_many(const Job& job, const Machine& machine);

/// The same with the time of one device and the efficiency. Of ranks that are continued only the number
/// is told: their parts are 0, and there are no events.
JobTimes times_of_many(const Job& job, const Machine& machine);

/// What the fullest rank holds, for any number of ranks: to the byte where chunks are of one length.
std::int64_t bytes_of_many(const Job& job, const Machine& machine, const MemoryOf& memory_of);

}  // namespace ringlab::model
