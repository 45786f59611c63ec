// What the command line of a job asks of one of its ranks, which is a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/inputs/shard_input.h"
#include "cli/run/job_output.h"
#include "optimized/ring/device_engine.h"
#include "optimized/transport/job_session.h"
#include "property_tests/subject.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// What carries K, V and the sums of their gradients: mpi between CPUs, nccl between devices.
enum class Carrier { mpi, nccl };

/// "mpi" or "nccl".
std::string carrier_name(Carrier carrier);

struct JobPlan {
  Carrier carrier = Carrier::mpi;
  verify::Subject subject;
  RunOptions options;
  bool check = false;
  std::int64_t check_rows = 0;
  bool backward = false;
  std::optional<JobOutput> output = {};
  std::optional<std::string> trace_path = {};
  RankInput input = {};

  /// With Carrier::nccl.
  ring::AttentionOf attention() const;
  bool checks() const { return check || check_rows > 0; }
};

/// The whole command line, checked, and this rank's rows of the input. With Carrier::nccl an
/// environment error where CUDA, NCCL or a device is missing.
JobPlan take_job_plan(Arguments& arguments, Carrier carrier, const JobSession& session);

}  // namespace ringlab::cli
