#include "stages/common/chunk_kernel.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages {

template <class Element>
StreamKernel<ChunkKernel<Element>> chunk_kernel_on_streams() {
  return {.memory_of = cuda::memory_of<ChunkKernel<Element>>,
          .launch = cuda::put_on_stream<ChunkKernel<Element>>};
}
template StreamKernel<ChunkKernel<double>> chunk_kernel_on_streams();
template StreamKernel<ChunkKernel<float>> chunk_kernel_on_streams();
template StreamKernel<ChunkKernel<Half>> chunk_kernel_on_streams();
template StreamKernel<ChunkKernel<BFloat16>> chunk_kernel_on_streams();

}  // namespace ringlab::stages
