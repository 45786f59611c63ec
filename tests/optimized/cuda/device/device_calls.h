// The kernels' host functions with calls whose arrays lie on the host, as the emulated kernels have
// them: everything goes to the device between canaries, and back.
#pragma once

#include "optimized/cuda/hopper/backward_hopper_ladder.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "tests/optimized/cuda/hopper/hopper_kernels.h"
#include "tests/optimized/cuda/portable/portable_kernels.h"

namespace ringlab::cuda {

/// Throws when a kernel wrote outside its outputs. Blocks and seeds have no effect.
template <class Element>
void device_forward_hopper(const ForwardCall<Element>& call, const EmulatedGrid& grid);

void device_forward_hopper_version(const HopperVersion& version, const ForwardCall<BFloat16>& call);

void device_backward_hopper_version(const HopperBackwardVersion& version,
                                    const BackwardCall<BFloat16>& call);

/// The seed has no effect.
template <class Element>
void device_backward_hopper(const BackwardCall<Element>& call, std::uint64_t seed);

template <class Element>
PortableKernels<Element> device_portable_kernels();

}  // namespace ringlab::cuda
