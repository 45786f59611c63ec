#include "stages/05_ring/ring.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_ring(Kernels& table) { add_kernel<ring::Kernel>(table, "ring"); }

}  // namespace ringlab::stages::cuda
