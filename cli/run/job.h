// `ringlab run optimized --transport mpi|nccl`: this process is one rank of a job, that mpirun
// started or whose ranks meet in a folder.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/run/run_plan.h"
#include "optimized/transport/communicator.h"
#include "property_tests/undecided.h"
#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// Reads this rank's rows, runs the engine, writes this rank's rows; rank 0 prints. Prints its own
/// errors, while the other ranks still listen, and returns the exit code: what is wrong before the
/// run, or with a file at its end, is printed by rank 0 alone.
int run_job(Arguments& arguments);

/// Writes to standard error; where that is gone, as after a launcher was killed, to the terminal if
/// there is one. From any thread.
void say_to_user(const std::string& text);

/// Sets the file of --json for a failure of this job; none when empty. To be called before the
/// session starts, whose threads may tell a failure.
void tell_failures_to(const std::string& json_path);
/// Writes a failure to the file of --json: on rank 0, and on rank 1 if it blames rank 0, which may
/// be dead; standard output is rank 0's alone. From any thread; `rank`: -1 if not known yet.
void tell_as_json(int rank, const Error& error, const std::string& message);

/// The exit code of a failure that is told, or that another rank tells; 0 before. Whoever is asked
/// to end after that has nothing to add.
std::atomic<int>& told_failure();

/// The failure of some rank, which keeps a job from starting.
struct JobFailure {
  int exit_code = 0;      ///< of the first rank that failed, the same on all ranks
  std::string text = {};  ///< on rank 0 only: once when all ranks say the same, else with the ranks
  ErrorParts parts = {};  ///< on rank 0 only: of the first rank that failed
};

/// To be called by all ranks, with the error of this rank if there was one; all return a failure if
/// any rank has an error. RankError when a rank does not come.
std::optional<JobFailure> share_failure(const std::optional<Error>& mine, Communicator& network);
/// Ends a job together with all ranks, for what share_failure() found: rank 0 says it. Returns the
/// exit code.
int end_job(JobSession& session, const JobFailure& failure);

/// To be called by all ranks with a plan, before any data moves: they agree on the build, on the
/// vectors, on everything that the engine wants to have in common, on the options that say what is
/// checked and written where, and on the content of the input. RankError that names what differs.
void agree_on_job(const Arguments& arguments, const RunPlan& plan, Communicator& network);

struct JobClock {
  std::chrono::steady_clock::time_point zero;  ///< rank 0's zero, as this rank's clock reads
  double uncertainty_s = 0;                    ///< how far off it can be, either way
};

/// To be called by all ranks. Rank 0 asks each rank for its time a few times; the answer with the
/// shortest round trip is taken to have been given half way through it, so it is off by at most
/// half that round trip (Cristian 1989). Drift during the run is not corrected. No rank's zero is
/// later than the moment when this returns, so no event is before it.
JobClock align_clocks(Communicator& network);

/// The report that every rank of a job sends to rank 0 at its end.
struct RankReport {
  RankStats stats;                                            ///< without events
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< of this rank, where it is known
  double worst = std::numeric_limits<double>::quiet_NaN();    ///< error/bound, when checked
  std::int64_t compared = 0;                                  ///< values, when checked
  std::int64_t unbounded = 0;                                 ///< of these, without a bound
  verify::Settlement settled = {};                            ///< with --check
  bool right = true;
  double clock_uncertainty_s = 0;  ///< when traced
  std::string device = {};         ///< with --transport nccl
  std::vector<double> sums = {};   ///< of gradients, where they are checked by these
};

/// All reports on rank 0, nothing elsewhere. To be called by all ranks.
std::vector<RankReport> gather(const RankReport& mine, Communicator& network);

/// The events of all ranks on rank 0, nothing elsewhere. To be called by all ranks.
std::vector<TraceEvent> gather_events(const std::vector<TraceEvent>& mine, Communicator& network);

/// The destinations of a rank's results.
struct JobEnd {
  Output* output = nullptr;  ///< of rank 0 alone
  io::AtomicFiles& files;    ///< of this rank; those of the output, where there is one
};
/// Computes, checks and writes, and ends the session: files get their names when all ranks have
/// written theirs and nothing is left that could fail elsewhere. Returns the exit code: 1 when any
/// rank is wrong, where that was asked. To be called by all ranks.
int run_job_rank(const RunPlan& plan, const JobEnd& end, JobSession& session);

}  // namespace ringlab::cli
