// The kernels of a run on devices, on the emulated GPU.
#pragma once

#include "optimized/ring/streams/cuda_streams.h"

namespace ringlab::cuda {

enum class EmulatedForward { hopper, portable };

template <class Element>
ring::DeviceKernels<Element> emulated_device_kernels(EmulatedForward forward, const Shape& shape);

}  // namespace ringlab::cuda
