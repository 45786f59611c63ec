// Namespaces of Linux: foreign code has processes, a network and mounts of its own.
#pragma once

#include <cstdint>

namespace ringlab::plugins {

/// The namespaces that the machine allows.
struct Namespaces {
  bool users = false, processes = false, network = false, mounts = false;
};

/// Enters new namespaces, as many as are allowed; the one of processes begins with the next child.
/// Called in a process with one thread; writes no files but those of /proc/self.
Namespaces enter_namespaces();

/// Makes all file systems that are mounted read-only, in this namespace of mounts: neither contents
/// nor owners, modes, times and attributes of files can be changed. False on Linux before 5.12.
bool make_read_only();

/// Mounts a /proc that shows the processes of this namespace only and cannot be written; called by
/// a process inside it. False where /proc is as it was.
bool mount_own_proc();

/// Brings up the loopback of this network namespace, for ranks that talk to each other.
void raise_loopback();

/// A folder of files in memory.
inline constexpr const char* kSharedMemory = "/dev/shm";

/// Limits the files in kSharedMemory, which are memory, to so many bytes together.
void limit_shared_memory(std::int64_t bytes);

/// Leaves no terminal in /dev/pts.
void hide_terminals();

}  // namespace ringlab::plugins
