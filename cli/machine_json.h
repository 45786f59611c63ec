// What this machine and this build have, as JSON: of `ringlab doctor`, and beside measurements.
#pragma once

#include "cli/build_info.h"
#include "cli/machine.h"
#include "cli/output.h"

namespace ringlab::cli {

/// "processor", "memory", "cuda", "nccl", "cudnn" and "mpi".
Json machine_json(const BuildInfo& build, const Machine& machine);

}  // namespace ringlab::cli
