#include "stages/06_causal_ring/causal_ring.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_causal_ring(Kernels& table) { add_kernel<causal_ring::Kernel>(table, "causal_ring"); }

}  // namespace ringlab::stages::cuda
