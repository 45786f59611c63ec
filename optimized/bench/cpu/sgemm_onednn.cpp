// oneDNN as a peer.
#include <dnnl.h>

#include <stdexcept>

#include "optimized/bench/cpu/sgemm_peer.h"

namespace ringlab::bench {

std::string describe_library() {
  const dnnl_version_t* const version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

void multiply_matrices(int n, const float* a, const float* b, float* c) {
  const dnnl_status_t status = dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
  if (status != dnnl_success) throw std::runtime_error("dnnl_sgemm failed");
}

}  // namespace ringlab::bench
