// In place of optimized/ring/vendor/cudnn_kernels.cpp: on devices that are memory a plain loop does what
// cuDNN would be asked for.
#include "optimized/ring/vendor/cudnn_kernels.h"
#include "tests/optimized/cuda/cudnn/memory_rings.h"
#include "tests/optimized/cuda/cudnn/memory_sdpa.h"

namespace ringlab::ring {

template <class Element>
DeviceKernels<Element> cudnn_kernels() {
  return cudnn::kernels_on_memory<Element>(cudnn::memory_runner());
}
template DeviceKernels<Half> cudnn_kernels();
template DeviceKernels<BFloat16> cudnn_kernels();

}  // namespace ringlab::ring
