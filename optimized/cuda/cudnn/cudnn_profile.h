// What is asked of cuDNN's attention. NVIDIA promises nothing of the kind, and no device has shown
// yet that it is kept: it is what a kernel of its published algorithm keeps.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/numerics.h"

namespace ringlab::cudnn {

/// Rows meet at most `blocks` blocks of keys of the kernel, and their results are merged `merges`
/// times from outputs rounded to `dtype`; 0 where the kernel's own results are those of the run.
/// f16 and bf16.
NumericsProfile cudnn_profile(DType dtype, std::int64_t blocks, std::int64_t merges);

}  // namespace ringlab::cudnn
