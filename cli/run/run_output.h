// The results of a run as files: tensors of one process or of the ranks of a job, and traces. They
// have their names once they are committed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/line/arguments.h"
#include "optimized/ring/engine.h"
#include "property_tests/subject.h"
#include "reference/core/run.h"
#include "reference/io/atomic_file.h"

namespace ringlab::cli {

struct RunPlan;

struct Results {
  const AttentionOutput& output;
  const std::optional<AttentionGradients>& gradients;
};
/// Writes o, lse and any dq, dk and dv, in the problem's dtype (lse in f32, or f64 for f64).
void write_results(const std::string& path, const LoadedInput& loaded, const Results& results,
                   io::AtomicFiles& files);

/// Usage or environment error for a path that --output cannot write to; checked before the run, so
/// that it is not done in vain.
void check_output(const std::string& path);

enum class OutputShards { merged, apart };

struct JobOutput {
  std::string path;
  OutputShards shards = OutputShards::merged;
};
/// --output and, where ranks are processes, --output-shards; nothing without --output.
std::optional<JobOutput> take_job_output(Arguments& arguments, const verify::Place& place);

/// The path of a rank's rows with --output-shards apart: PATH.rank-R.safetensors or PATH/rank-R.
std::filesystem::path shard_path(std::filesystem::path path, int rank);

/// Notes which folders the output of a job needs that are missing now, before any rank makes them.
void expect_job_output(const JobOutput& output, io::AtomicFiles& files);
/// Writes o, lse and gradients: this rank's rows. merged: into files that rank 0 commits when all
/// have written, and the others leave to it; apart: into PATH.rank-R.safetensors or PATH/rank-R/,
/// with the positions of the rows. To be called by all ranks of `network`.
void write_job_output(const RunPlan& plan, const RunResult& result, Communicator& network,
                      io::AtomicFiles& files);

/// Returns a line to print: "wrote 12 events to trace.json", and a viewer for many events.
std::string write_trace(const std::string& path, const RunResult& result, io::AtomicFiles& files);
std::string write_trace(const std::string& path, const std::vector<TraceEvent>& events,
                        io::AtomicFiles& files);

}  // namespace ringlab::cli
