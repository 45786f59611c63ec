// Kernels for GPUs as the contract of block kernels has them: what calls them is the emulated GPU,
// or a device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "optimized/cuda/hopper/backward_hopper_ladder.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "tests/optimized/cuda/hopper/hopper_kernels.h"
#include "tests/optimized/cuda/portable/portable_kernels.h"
#include "tests/optimized/kernels/block_kernel.h"

namespace ringlab::cuda {

template <class Element>
using BackwardFunction = std::function<void(const BackwardCall<Element>& call, std::uint64_t seed)>;

/// The kernel without cases. `exp_error`: of weights, besides that of hopper_profile().
/// `tile_queries`: of the mask's tiles; 0 for those of the kernel as it is.
template <class Element>
BlockKernel forward_hopper_kernel(EmulatedHopper<Element> run, std::int32_t tile_queries = 0,
                                  double exp_error = 0);
template <class Element>
BlockKernel backward_kernel(BackwardFunction<Element> run);
/// Gradients are those of `backward`, forward passes those of `forward`; either may be null.
template <class Element>
BlockKernel portable_kernel(const PortableKernels<Element>& run);

/// The kernel with a name and the cases that it must pass.
BlockKernel with_forward_hopper_cases(BlockKernel kernel);
BlockKernel with_backward_hopper_cases(BlockKernel kernel);
BlockKernel with_portable_cases(BlockKernel kernel);

/// A version of the ladders with its cases.
BlockKernel version_kernel(const HopperVersion& version, EmulatedHopper<BFloat16> run);
BlockKernel version_kernel(const HopperBackwardVersion& version, BackwardFunction<BFloat16> run);

}  // namespace ringlab::cuda
