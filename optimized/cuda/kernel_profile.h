// The numerics that the kernels for tensor cores promise.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/numerics.h"

namespace ringlab::cuda {

/// The profile of the forward and backward kernels of this folder, for rows that meet at most
/// `blocks` blocks of keys (counted over all chunks, and one more per chunk for the state that
/// comes in).
/// Usage error for a type that tensor cores do not take here.
NumericsProfile kernel_profile(DType dtype, std::int64_t blocks);

/// The profile of forward_hopper(), whose running maximum may lag behind. Its blocks are of 80 keys
/// or more.
NumericsProfile hopper_profile(DType dtype, std::int64_t blocks);

/// Blocks that a row meets in a chunk of `keys` keys, whichever of these kernels computes it; add 1
/// for the whole ring.
std::int64_t most_blocks_met(std::int64_t keys);

}  // namespace ringlab::cuda
