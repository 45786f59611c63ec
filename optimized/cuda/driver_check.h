// A check that the driver of this machine is new enough for the CUDA runtime of this build.
#pragma once

#include <optional>

#include "reference/core/error.h"

namespace ringlab::cuda {

/// Empty when the driver is new enough, else what was expected and found. Versions as CUDA gives
/// them: 12040 for 12.4, 0 for no driver. Within a major version an older driver will do, as NVIDIA
/// promises.
std::optional<ErrorParts> driver_problem(int driver, int runtime);

}  // namespace ringlab::cuda
