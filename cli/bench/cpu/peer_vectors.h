// Libraries that compute with the vectors that are in use here.
#pragma once

#include <string>

#include "cli/bench/measure/peer.h"

namespace ringlab::bench {

/// What keeps PyTorch, MKL, oneDNN and OpenBLAS to vectors of a kind (vectors.h) that was chosen.
/// Empty for the widest of this processor, which they find by themselves, and for scalar.
Environment keep_to(const std::string& vectors);

}  // namespace ringlab::bench
