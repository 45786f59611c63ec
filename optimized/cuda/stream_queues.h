// The number of hardware queues of a device, on which streams run beside each other.
#pragma once

#include <cstdlib>

namespace ringlab::cuda {

/// Asks CUDA for 32 queues for each device, the most that there are, unless the user has decided. By
/// default there are 8, and streams that share one wait for each other; a rank has three. Call it
/// at the beginning of a program: CUDA has not started, and no other thread reads the environment.
/// True when the variable was written, or was set already.
inline bool ask_for_stream_queues() {
  return ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0) == 0;
}

}  // namespace ringlab::cuda
