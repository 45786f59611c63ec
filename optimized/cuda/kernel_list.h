// The kernels of this program by their addresses, so that all can be loaded before a run begins.
#pragma once

#include <span>

namespace ringlab::cuda {

/// Adds a kernel. Returns true, so that it can initialise a constant before main() begins.
bool list_kernel(const void* kernel);

/// All kernels that were added.
std::span<const void* const> listed_kernels();

}  // namespace ringlab::cuda
