#include "stages/01_broadcast/broadcast.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_broadcast(Kernels& table) { add_kernel<broadcast::Kernel>(table, "broadcast"); }

}  // namespace ringlab::stages::cuda
