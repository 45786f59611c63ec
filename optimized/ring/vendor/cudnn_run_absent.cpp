#include "optimized/ring/vendor/cudnn_run.h"
#include "reference/core/error.h"

namespace ringlab::ring {

bool is_cudnn_compiled_in() { return false; }

void require_cudnn_and_devices() {
  throw_environment_error({.where = "cuDNN",
                           .expected = "a build with CUDA and cuDNN",
                           .actual = "a build without CUDA: not compiled in",
                           .hint = "Build with -DRINGLAB_CUDA=ON -DRINGLAB_CUDNN=ON"});
}

}  // namespace ringlab::ring
