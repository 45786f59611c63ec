// OpenBLAS as a peer. Its kernels are chosen by OPENBLAS_CORETYPE where the processor is unknown to
// it.
#include <cblas-openblas.h>

#include "optimized/bench/cpu/sgemm_peer.h"

namespace ringlab::bench {

std::string describe_library() {
  return std::string(openblas_get_config()) + ", core " + openblas_get_corename();
}

void multiply_matrices(int n, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}

}  // namespace ringlab::bench
