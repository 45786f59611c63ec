#include "tests/optimized/cuda/portable/portable_kernels.h"

#include "optimized/cuda/portable/backward_portable.cuh"
#include "optimized/cuda/portable/backward_queries.cuh"
#include "optimized/cuda/portable/forward_portable.cuh"
#include "tests/emulator/machine/emulate.h"

namespace ringlab::cuda {
#include "tests/optimized/cuda/portable/portable_kernels-inl.h"

template <class Element>
PortableKernels<Element> portable_kernels() {
  return {&emulated_forward<Element>, &emulated_backward<Element>};
}
template PortableKernels<Half> portable_kernels();
template PortableKernels<BFloat16> portable_kernels();

}  // namespace ringlab::cuda
