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

}  // namespace ringlab
