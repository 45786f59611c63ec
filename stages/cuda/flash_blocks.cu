#include "stages/03_flash_blocks/flash_blocks.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_flash_blocks(Kernels& table) { add_kernel<flash_blocks::Kernel>(table, "flash_blocks"); }

}  // namespace ringlab::stages::cuda
