// The CUDA build of the stages' kernels, as the rest of the program sees it. No CUDA types here.
#pragma once

#include <map>
#include <typeindex>

#include "stages/common/device_list.h"

namespace ringlab::stages::cuda {

using Kernels = std::map<std::type_index, CudaKernel>;

/// Asks the driver; never throws.
CudaStatus device_status();

/// Every kernel that has a CUDA build, by its type.
Kernels all_kernels();

// One per stage that waits for its kernels, each in a .cu file of its own.
void add_broadcast(Kernels& table);
void add_online_softmax(Kernels& table);
void add_flash_blocks(Kernels& table);
void add_merge(Kernels& table);
void add_ring(Kernels& table);
void add_causal_ring(Kernels& table);

}  // namespace ringlab::stages::cuda
