#include "tests/optimized/cuda/backward_hopper_kernels.h"

#include "optimized/cuda/backward_hopper_shapes.h"
#include "optimized/cuda/backward_queries.cuh"
#include "optimized/cuda/emulator/emulate.h"
#include "optimized/cuda/emulator/tensor_map.h"

namespace ringlab::cuda {
#include "tests/optimized/cuda/backward_hopper_kernels-inl.h"

template void emulated_backward_hopper(const BackwardCall<Half>&, std::uint64_t);
template void emulated_backward_hopper(const BackwardCall<BFloat16>&, std::uint64_t);

}  // namespace ringlab::cuda
