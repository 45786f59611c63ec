// The plan of a command line of `ringlab run`: for this process, or for one rank of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/inputs/shard_input.h"
#include "cli/run/run_costs.h"
#include "cli/run/run_output.h"
#include "optimized/transport/faulty_communicator.h"
#include "optimized/transport/job_session.h"
#include "property_tests/gradient_identities.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

struct RunPlan {
  verify::Subject subject;
  verify::Place place;
  RunOptions options;
  bool check = false;
  bool backward = false;
  std::int64_t check_rows = 0;
  std::int64_t rounds = 0;  ///< that are timed, after one that is not; 0: one run
  std::optional<JobOutput> output = {};
  std::optional<std::string> trace_path = {};
  RankInput input = {};                 ///< without a job only `loaded`
  std::vector<std::int64_t> rows = {};  ///< those of --check-rows
  std::set<std::string> defaults = {};  ///< names of options that were not given
  std::optional<FaultPlan> fault = {};  ///< that one rank of a job is to have

  const Problem& problem() const { return input.loaded.problem; }
  Pass last_pass() const { return backward ? Pass::backward : Pass::forward; }
  bool checks() const { return check || check_rows > 0; }
  NumericsProfile profile() const { return subject.profile(problem(), options); }
  /// The account of a run, with the figures of `ranks`, if any.
  RunAccount account(const std::vector<RankStats>& ranks = {}) const;
  /// True if gradients are checked by their sums, as the input is too long for a reference.
  bool checks_sums() const { return input.loaded.by_rows && backward && check_rows > 0; }
};

/// One run, or those of --rounds: the last result, with the median of the seconds of all runs but
/// the first. `run` is told whether it is the last.
RunResult run_in_rounds(std::int64_t rounds, const std::function<RunResult(bool)>& run);

/// The checked command line, with the input. `session`: a job's, else null; its ranks get their own
/// rows and RINGLAB_FAULT. Environment error where CUDA, NCCL, a device or memory is missing.
RunPlan take_run_plan(Arguments& arguments, const JobSession* session);

}  // namespace ringlab::cli
