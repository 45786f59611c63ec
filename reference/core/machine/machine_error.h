// What failed was this machine, not who computes: a device, its driver, its memory, a library.
#pragma once

#include <utility>

#include "reference/core/error.h"

namespace ringlab {

/// An environment error that says nothing of the kernel that ran: who judges kernels passes it on
/// and gives no verdict. After a sticky error of a device none of this process could be trusted.
class MachineError : public Error {
 public:
  explicit MachineError(ErrorParts parts) : Error(ErrorKind::environment, std::move(parts)) {}
};

/// Work on a device does not end. What it uses was neither freed nor waited for, which would not
/// end either: who can tell nobody else ends the program by std::_Exit.
class DeviceStuck : public MachineError {
 public:
  using MachineError::MachineError;
};

}  // namespace ringlab
