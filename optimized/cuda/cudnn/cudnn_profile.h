// The accuracy asked of cuDNN's attention. NVIDIA promises none: these are the bounds that a kernel
// of its published algorithm keeps. The laws test them on a device (`ringlab verify cudnn`).
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/numerics.h"

namespace ringlab::cudnn {

/// The pieces of a run.
struct CudnnWork {
  std::int64_t blocks = 0;  ///< of keys of the kernel, which a row meets at most
  /// Merges of outputs rounded to the problem's type; 0 where the kernel's output is the run's.
  std::int64_t merges = 0;
  /// Partial sums of dq, and of dk and dv, that are rounded to that type before they are added up.
  std::int64_t query_gradient_stores = 0;
  std::int64_t key_gradient_stores = 0;
  std::int64_t key_gradient_heads = 1;  ///< whose sums are rounded beside each other
};

/// f16 and bf16.
NumericsProfile cudnn_profile(DType dtype, const CudnnWork& work);

}  // namespace ringlab::cudnn
