// Settings by which peers' libraries use the same vectors as the kernels here.
#pragma once

#include <string>

#include "optimized/bench/measure/peer.h"

namespace ringlab::bench {

/// Environment variables that keep PyTorch, MKL, oneDNN and OpenBLAS to one kind of vectors
/// (vectors.h). Empty for this processor's widest, which they find by themselves, and for scalar.
Environment keep_to(const std::string& vectors);

}  // namespace ringlab::bench
