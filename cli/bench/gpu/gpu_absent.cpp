// In builds without CUDA.
#include "cli/bench/gpu/gpu.h"
#include "reference/core/error.h"

namespace ringlab::bench {

std::unique_ptr<Gpu> open_gpu(double) {
  throw_environment_error({.where = "bench gpu",
                           .expected = "a CUDA device",
                           .actual = "a build without CUDA",
                           .hint = "Build with -DRINGLAB_CUDA=ON, or use bench cpu"});
}

}  // namespace ringlab::bench
