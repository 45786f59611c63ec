#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"

#include "optimized/cuda/hopper/backward_hopper_shapes.h"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/tensor_map.h"

namespace ringlab::cuda {
#include "tests/optimized/cuda/hopper/backward_hopper_kernels-inl.h"

template void emulated_backward_hopper(const BackwardCall<Half>&, std::uint64_t);
template void emulated_backward_hopper(const BackwardCall<BFloat16>&, std::uint64_t);

}  // namespace ringlab::cuda
