#include "stages/04_merge/merge.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_merge(Launchers& table) { add_kernel<merge::Kernel>(table); }

}  // namespace ringlab::stages::cuda
