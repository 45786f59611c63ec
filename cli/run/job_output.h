// The result of a job whose ranks are processes: one file that all write, or one for each rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::cli {

enum class OutputShards { merged, apart };

struct JobOutput {
  std::string path;
  OutputShards shards = OutputShards::merged;
};
/// `--output-shards`, for the list of options.
OptionSpec output_shards_option();
/// --output and --output-shards; nothing without --output.
std::optional<JobOutput> take_job_output(Arguments& arguments);

/// What the shard is a part of.
struct JobShape {
  Problem problem;
  RunOptions options;
  std::size_t dimensions = 4;  ///< that o has in its file
};
/// Writes o, lse and gradients: this rank's rows. merged: the files get their names when all ranks
/// have written; apart: PATH.rank-R.safetensors or PATH/rank-R/, with the positions of the rows.
/// To be called by all ranks of `network`.
void write_job_output(const JobOutput& output, const JobShape& job, const RunResult& result,
                      Communicator& network);

}  // namespace ringlab::cli
