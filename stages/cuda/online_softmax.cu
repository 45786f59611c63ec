#include "stages/02_online_softmax/online_softmax.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_online_softmax(Launchers& table) { add_kernel<online_softmax::Kernel>(table); }

}  // namespace ringlab::stages::cuda
