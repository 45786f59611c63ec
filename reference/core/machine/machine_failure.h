// Failures for want of memory, threads, descriptors or disk space: no verdict about any kernel.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "reference/core/machine/machine_error.h"

namespace ringlab {

/// True for an errno of an exhausted machine, of a limit set on this process that is reached, or of
/// a failed device; all other codes concern the request itself.
bool is_of_machine(int code);

/// `thrown` as a MachineError, where the machine failed: std::bad_alloc, a std::system_error whose
/// code is_of_machine(), or a MachineError, which keeps its words. Empty for all else. `where` is
/// for the message. May itself throw std::bad_alloc.
std::optional<MachineError> machine_failure(const std::exception& thrown,
                                            const std::string& where = "this machine");

/// Throws std::system_error with `code` where it is_of_machine(); returns for all other codes.
void throw_if_of_machine(int code, const std::string& what);

/// For a call that failed with `code`: a MachineError where is_of_machine(), else an Error of
/// `otherwise`.
[[noreturn]] void throw_failed_call(ErrorKind otherwise, ErrorParts parts, int code);

}  // namespace ringlab
