#include "stages/03_flash_blocks/flash_blocks.h"
#include "stages/cuda/launcher.cuh"

namespace ringlab::stages::cuda {

void add_flash_blocks(Launchers& table) { add_kernel<flash_blocks::Kernel>(table); }

}  // namespace ringlab::stages::cuda
