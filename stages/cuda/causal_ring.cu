#include "stages/06_causal_ring/causal_ring.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_causal_ring(Launchers& table) { add_kernel<causal_ring::Kernel>(table); }

}  // namespace ringlab::stages::cuda
