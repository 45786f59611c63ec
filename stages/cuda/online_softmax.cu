#include "stages/02_online_softmax/online_softmax.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_online_softmax(Kernels& table) {
  add_kernel<online_softmax::Kernel>(table, "online_softmax");
}

}  // namespace ringlab::stages::cuda
