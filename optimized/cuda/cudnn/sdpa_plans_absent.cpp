// Stands in for sdpa_plans.cpp where cuDNN's headers or those of its frontend are missing.
#include "optimized/cuda/cudnn/sdpa_plans.h"

namespace ringlab::cudnn {
namespace {

[[noreturn]] void say_what_is_missing() {
  throw_environment_error(
      {.where = "cuDNN",
       .expected = "a build with cuDNN",
       .actual = "one built without cudnn.h or cudnn_frontend.h",
       .hint = "Install libcudnn9-dev-cuda, run scripts/cudnn_frontend and configure with "
               "-DRINGLAB_CUDNN=ON"});
}

}  // namespace

bool compiled_in() { return false; }
std::string require_cudnn() { say_what_is_missing(); }
void check_graph(const SdpaGraph&, int) { say_what_is_missing(); }
void check_graph(const SdpaBackwardGraph&, int) { say_what_is_missing(); }
SdpaRunner cudnn_runner() { say_what_is_missing(); }

}  // namespace ringlab::cudnn
