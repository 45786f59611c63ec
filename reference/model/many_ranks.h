// Runs of thousands of ranks, from runs of some.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/model/job.h"

namespace ringlab::model {

/// Up to here all ranks are executed in a second or two.
inline constexpr int kQuicklyExecuted = 256;

/// Two numbers of ranks that are executed. A cost that grows as much with each rank more goes on
/// along the line through both.
struct RankLine {
  int half = 0;
  int most = 0;
};

/// Four and eight nodes, of the machine or of the schedule, and no fewer than 16 and 32 ranks: less
/// the ranks that the job's last node lacks.
RankLine line_of(const Job& job, const Machine& machine);
/// The line of rings whose schedule has no nodes of its own.
RankLine line_of(int ranks, const Machine& machine);

/// The cost of so many ranks: as asked for up to the most that are executed, of more along the line.
double on_line(int ranks, const RankLine& line, const std::function<double(int)>& cost_of);

/// True when with_ranks() can give a job other numbers of ranks: a mask that is made for any length
/// (full, causal, windows), over as many keys as queries.
bool has_any_length(const Job& job);

/// True when the costs of a job lie on a line: has_any_length(), no rank holds all chunks, and
/// windows lie on contiguous chunks, whose neighbours are the same for any number of ranks.
bool has_line(const Job& job);

/// True when seconds_of_many() continues the line of a job, and does not execute all of its ranks.
bool is_continued(const Job& job, const Machine& machine);

/// The way to the cost of a job that is_continued(): along the line, on to `last` ranks, or, where
/// line.half is 0, by a run of line.most ranks alone, which a window does not reach across.
struct Continuation {
  RankLine line;
  int last = 0;
};
Continuation continuation_of(const Job& job, const Machine& machine);

/// A job with another number of ranks and chunks as long as before, where it has_any_length().
Job with_ranks(const Job& job, int ranks);

/// The seconds of simulate_job(), for any number of ranks in the time of some dozens. Executed and
/// continued seconds of 256 ranks differ by 2 % at most; by 8 % where nodes have a schedule of
/// their own and the last node is not full, by 9 % where they have one and the mask has windows.
/// Ranks beyond those that a window reaches add nothing: the others are executed, where that is
/// quick. Errors as simulate_job().
double seconds_of_many(const Job& job, const Machine& machine);

/// The times of a job by seconds_of_many(), with the time of one device and so the efficiency. Of
/// the ranks only the number is told: their parts are 0, and there are no events.
JobTimes times_of_many(const Job& job, const Machine& machine);

/// Bytes of the fullest rank, for any number of ranks: exact where chunks are of one length.
std::int64_t bytes_of_many(const Job& job, const Machine& machine, const MemoryOf& memory_of);

}  // namespace ringlab::model
