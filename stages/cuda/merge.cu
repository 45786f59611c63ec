#include "stages/04_merge/merge.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_merge(Kernels& table) { add_kernel<merge::Kernel>(table, "merge"); }

}  // namespace ringlab::stages::cuda
