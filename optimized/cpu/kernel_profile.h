// The numerics that the block kernels promise.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/numerics.h"

namespace ringlab::cpu {

/// The profile of forward_block() with the vectors in use, and of backward_block(), which rounds
/// less; for rows that meet at most `blocks` blocks of keys.
NumericsProfile kernel_profile(DType dtype, std::int64_t blocks);

}  // namespace ringlab::cpu
