// What this machine and this build have, as JSON: of `ringlab doctor`, and beside measurements.
#pragma once

#include "cli/line/build_info.h"
#include "cli/line/output.h"
#include "cli/machine/machine.h"

namespace ringlab::cli {

/// "processor", "memory", "cuda", "nccl", "cudnn" and "mpi".
Json machine_json(const BuildInfo& build, const Machine& machine);

}  // namespace ringlab::cli
