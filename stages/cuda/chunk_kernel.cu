#include "stages/common/chunk_kernel.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_chunk_kernel(Launchers& table) { add_kernel<ChunkKernel>(table); }

}  // namespace ringlab::stages::cuda
