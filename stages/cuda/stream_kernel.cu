#include "stages/common/stream_kernel.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages {

template <class Element>
StreamKernel<causal_ring::Kernel<Element>> tile_kernel_on_streams() {
  return {.memory_of = cuda::memory_of<causal_ring::Kernel<Element>>,
          .launch = cuda::put_on_stream<causal_ring::Kernel<Element>>};
}
template StreamKernel<causal_ring::Kernel<double>> tile_kernel_on_streams();
template StreamKernel<causal_ring::Kernel<float>> tile_kernel_on_streams();
template StreamKernel<causal_ring::Kernel<Half>> tile_kernel_on_streams();
template StreamKernel<causal_ring::Kernel<BFloat16>> tile_kernel_on_streams();

}  // namespace ringlab::stages
