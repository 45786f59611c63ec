// In builds without the headers of cuBLASLt.
#include "optimized/bench/gpu/gpu_works.h"
#include "reference/core/error.h"

namespace ringlab::bench {

GpuWork make_matrix_product(const GpuTimer&, std::int64_t) {
  throw_environment_error({.where = "cuBLASLt",
                           .expected = "its matrix product",
                           .actual = "a build without its headers",
                           .hint = "Install the CUDA toolkit's cuBLAS and build again"});
}

}  // namespace ringlab::bench
