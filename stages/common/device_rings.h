// Stages 07 to 09 on GPUs: rings whose chunks travel from device to device.
#pragma once

#include "reference/core/run.h"

namespace ringlab::stages {

/// Stage 07 on the devices of this machine (streamed_ring.h); each rank takes one of them in turn.
/// Errors as run_ranks_of(); a build without CUDA is an environment error.
RunResult run_overlapped_ring_on_devices(const AttentionInput& input, const RunOptions& options);

}  // namespace ringlab::stages
