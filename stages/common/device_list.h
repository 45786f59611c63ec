// Devices that the stages can run on, and the CUDA build of their kernels where there is one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <typeindex>

#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::stages {

/// CUDA as this build and this machine offer it; for `ringlab doctor`.
struct CudaStatus {
  bool compiled_in = false;
  int devices = 0;
  std::string
      text;  ///< one line: "not compiled in", why no device was found, or the devices' names
  std::optional<ErrorParts> problem = {};  ///< of a driver that is missing or too old
  /// "NAME, compute capability 7.0" of the first device that cannot run the kernels of this build;
  /// empty where all can. Ranks take the devices in turn.
  std::string unfit = {};
  /// The compute capabilities that the kernels were compiled for: "8.0, 9.0".
  std::string compiled_for = {};
};
CudaStatus cuda_status();

/// Environment error that says what is missing when `device` cannot be used here.
void require_device(DeviceKind device);
/// require_device() for CUDA, on a machine that offers `status`.
void require_cuda(const CudaStatus& status);

/// One launch of a kernel on a GPU.
struct CudaLaunch {
  std::string stage = {};  ///< for error messages, as the rank
  std::int64_t blocks = 0;
  int threads = 0;
  int rank = 0;
  double timeout_s = 60.0;  ///< deadline of the kernel, once it was launched
};
/// Copies the arrays of `*kernel` (of the type it was looked up by) to the device, runs it, copies
/// the outputs back; one rank after the other. Environment error with the CUDA call and the rank
/// when something fails; with what was wanted and what is free when memory does not suffice.
/// DeviceStuck when the kernel has not ended at its deadline, and until such a kernel has ended.
using CudaLauncher = void (*)(const void* kernel, const CudaLaunch& launch);

/// Environment error when that kernel has no CUDA build.
CudaLauncher find_cuda_kernel(std::type_index kernel);

}  // namespace ringlab::stages
