// The CUDA build of the stages' kernels, as the rest of the program sees it. No CUDA types here.
#pragma once

#include <map>
#include <typeindex>

#include "stages/common/device_list.h"

namespace ringlab::stages::cuda {

using Launchers = std::map<std::type_index, CudaLauncher>;

/// Asks the driver; never throws.
CudaStatus device_status();

/// Every kernel that has a CUDA build, by its type.
Launchers all_launchers();

// One per stage, each in a .cu file of its own.
void add_broadcast(Launchers& table);
void add_online_softmax(Launchers& table);
void add_flash_blocks(Launchers& table);
void add_merge(Launchers& table);
void add_ring(Launchers& table);
void add_causal_ring(Launchers& table);
void add_chunk_kernel(Launchers& table);  // stages 07, 08 and 09

}  // namespace ringlab::stages::cuda
