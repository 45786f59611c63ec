// The CUDA build of the stages' kernels, as the rest of the program sees it. No CUDA types here.
#pragma once

#include <map>
#include <typeindex>

#include "stages/common/device_list.h"

namespace ringlab::stages::cuda {

using Kernels = std::map<std::type_index, CudaLauncher>;

/// Asks the driver; never throws.
CudaStatus device_status();

/// Every kernel that has a CUDA build, by its type.
Kernels all_kernels();

}  // namespace ringlab::stages::cuda
