// Findings of `ringlab doctor` about this machine and this build, and their JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/line/build_info.h"
#include "cli/line/output.h"
#include "cli/machine/machine.h"

namespace ringlab::cli {

/// A row of the doctor's table.
struct Finding {
  std::string topic;
  std::string found;
  std::string enables;
};

/// The kernels in this build, the driver, and each device with what it enables.
std::vector<Finding> cuda_findings(const BuildInfo& build, const CudaDriver& driver);

Json cuda_json(const BuildInfo& build, const CudaDriver& driver);

/// "12.4" as 12004, so that versions compare; 0 for texts that are no version.
int version_number(const std::string& version);

/// "processor", "memory", "cuda", "nccl", "cudnn" and "mpi".
Json machine_json(const BuildInfo& build, const ThisMachine& machine);

}  // namespace ringlab::cli
