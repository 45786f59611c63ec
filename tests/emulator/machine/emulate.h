// Runs a kernel on the emulated GPU.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {

/// The launch of a grid. `seed` decides the order in which threads run, how late asynchronous
/// copies and matrix products happen, and nothing else.
struct Launch {
  int blocks = 1;
  int threads = 32;  ///< per block, a multiple of 32
  int shared_bytes = 0;
  std::uint64_t seed = 0;
  int blocks_at_once = 1;        ///< blocks that run interleaved; the others follow
  int cluster = 1;               ///< blocks of a cluster, which begin together
  int registers_per_thread = 0;  ///< 0: as many as the machine has for so many threads
};

/// Calls `thread_code`, which calls the kernel, once for every thread of every block, all on this
/// thread of the operating system. Throws a KernelFault where the kernel breaks a rule or
/// deadlocks, and passes on exceptions of `thread_code`.
void emulate(const Launch& launch, const std::function<void()>& thread_code);

}  // namespace ringlab::cuda::emulator
