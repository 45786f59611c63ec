// The functions that a peer program needs from a library of matrix products.
#pragma once

#include <string>

namespace ringlab::bench {

/// Name and version of the library, and its kernels' processor if it tells.
std::string describe_library();

/// c = a b, all (n, n), row-major, dense.
void multiply_matrices(int n, const float* a, const float* b, float* c);

}  // namespace ringlab::bench
