// What the machine has no more of: memory, threads, descriptors, room. No verdict about anybody.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "reference/core/machine/machine_error.h"

namespace ringlab {

/// Whether an errno says that the machine, or a limit set on this process, has no more to give, or
/// that a device failed; all others say something of what was asked for.
bool is_of_machine(int code);

/// What was thrown as a MachineError, where it says so: std::bad_alloc, a std::system_error of such
/// a code, or a MachineError itself, which keeps its words. Empty for all else. `where` is for the
/// message. May itself throw std::bad_alloc.
std::optional<MachineError> machine_failure(const std::exception& thrown,
                                            const std::string& where = "this machine");

/// For a call that failed with `code`: a MachineError where is_of_machine(), else an Error of
/// `otherwise`.
[[noreturn]] void throw_failed_call(ErrorKind otherwise, ErrorParts parts, int code);

}  // namespace ringlab
