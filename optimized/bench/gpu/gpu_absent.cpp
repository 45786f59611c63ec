// In builds without CUDA.
#include "optimized/bench/gpu/gpu.h"
#include "reference/core/error.h"

namespace ringlab::bench {

std::unique_ptr<Gpu> open_gpu(double) {
  throw_environment_error({.where = "ringlab_goals gpu",
                           .expected = "a CUDA device",
                           .actual = "a build without CUDA",
                           .hint = "Build with -DRINGLAB_CUDA=ON, or use ringlab_goals cpu"});
}

}  // namespace ringlab::bench
