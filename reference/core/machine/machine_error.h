// Failures of this machine, not of the kernel: a device, its driver, its memory, a library.
#pragma once

#include <utility>

#include "reference/core/error.h"

namespace ringlab {

/// An environment error that says nothing of the kernel that ran: a judge of kernels passes it on
/// and gives no verdict, for after a sticky error of a device no verdict of this process is sound.
class MachineError : public Error {
 public:
  explicit MachineError(ErrorParts parts) : Error(ErrorKind::environment, std::move(parts)) {}
};

/// Work on a device that does not end. Its resources are neither freed nor waited for, which would
/// not end either: a caller that can tell nobody else ends the program by std::_Exit.
class DeviceStuck : public MachineError {
 public:
  using MachineError::MachineError;
};

}  // namespace ringlab
