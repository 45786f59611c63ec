#include "cli/line/build_info.h"

namespace ringlab::cli {

// The values come from cli/CMakeLists.txt.
BuildInfo build_info() {
  const std::string architectures = RINGLAB_CUDA_ARCHITECTURES;
  return {RINGLAB_VERSION,        RINGLAB_COMPILER, RINGLAB_BUILD_TYPE,  RINGLAB_FLAGS,
          !architectures.empty(), architectures,    RINGLAB_CUDA_RUNTIME};
}

}  // namespace ringlab::cli
