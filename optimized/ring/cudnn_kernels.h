// cuDNN's attention where rings on devices take their kernels from.
#pragma once

#include "optimized/ring/cuda_streams.h"

namespace ringlab::ring {

/// Forward: cuDNN (forward_cudnn.h). Backward: the portable kernel, which takes any lse.
/// Environment error where there is no cuDNN.
template <class Element>
DeviceKernels<Element> cudnn_kernels(const Shape& shape);

}  // namespace ringlab::ring
