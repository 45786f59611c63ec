// Stages 08 and 10 to 12 on GPUs: rings whose chunks travel from device to device
// (stages/08_overlapped_ring/streamed_ring.h). Each rank takes one of the machine's devices in
// turn. Errors as run_ranks_of(); in a build without CUDA the environment error that says so.
#pragma once

#include "reference/core/run.h"

namespace ringlab::stages {

RunResult overlapped_ring_on_gpus(const AttentionInput& input, const RunOptions& options);
RunResult balanced_ring_on_gpus(const AttentionInput& input, const RunOptions& options);
RunResult skipping_ring_on_gpus(const AttentionInput& input, const RunOptions& options);
RunResult overlapped_causal_ring_on_gpus(const AttentionInput& input, const RunOptions& options);

}  // namespace ringlab::stages
