// A tile program as work of a stream: its arrays lie on the device already, and nobody waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cuda/stream.h"
#include "stages/06_causal_ring/causal_ring.h"

namespace ringlab::stages {

/// Working memory of the blocks of a kernel, in bytes.
struct BlockMemory {
  std::int64_t block = 0;    ///< each
  std::int64_t scratch = 0;  ///< device memory for all of them; 0 where shared memory does
};

/// One launch. The current device is the stream's.
struct StreamLaunch {
  std::int64_t blocks = 0;
  int threads = 0;
  int rank = 0;  ///< for error messages
  BlockMemory memory = {};
  std::byte* scratch = nullptr;  ///< as much as `memory` says, and no other launch's meanwhile
  ringlab::cuda::Stream stream = nullptr;
};

/// Functions that launch a kernel of this type on a stream.
template <class Kernel>
struct StreamKernel {
  /// The memory of a kernel whose arrays are the host's; how many keys it has does not matter.
  BlockMemory (*memory_of)(const Kernel& kernel, const StreamLaunch& launch) = nullptr;
  /// Launches with the device's arrays. Environment errors name the CUDA call and the rank.
  void (*launch)(const Kernel& kernel, const StreamLaunch& launch) = nullptr;
};

/// The tile program of stage 06; defined where CUDA is compiled in (stages/cuda/stream_kernel.cu).
template <class Element>
StreamKernel<causal_ring::Kernel<Element>> tile_kernel_on_streams();

}  // namespace ringlab::stages
