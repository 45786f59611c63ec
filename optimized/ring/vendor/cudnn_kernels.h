// cuDNN's attention as DeviceKernels for rings on devices.
#pragma once

#include "optimized/ring/streams/cuda_streams.h"

namespace ringlab::ring {

/// cuDNN in both passes and row kernels of ours (cudnn_in_rings.h).
/// Environment error where there is no cuDNN.
template <class Element>
DeviceKernels<Element> cudnn_kernels();

}  // namespace ringlab::ring
