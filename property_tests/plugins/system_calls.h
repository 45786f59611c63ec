// A filter of system calls (seccomp) for foreign code.
#pragma once

namespace ringlab::plugins {

/// Refusals besides those that everybody gets: tracing, memory of other processes, namespaces,
/// mounts, memory that belongs to no process.
struct RefusedCalls {
  bool processes = false;  ///< new processes and other programs
  bool signals = false;    ///< to any other process
  bool network = false;    ///< all sockets but pairs; else those that reach out of a namespace
  bool metadata = false;   ///< changes of owners, modes, times and attributes of files
};

/// Refuses calls of this process and of all that it starts, for good: with EPERM, or with ENOSYS
/// where libraries have another way. False where there is no libseccomp or no such filter.
bool refuse_system_calls(const RefusedCalls& refused);

}  // namespace ringlab::plugins
