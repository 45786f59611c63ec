// Namespaces of Linux: foreign code has processes, a network and mounts of its own.
#pragma once

#include <cstdint>

namespace ringlab::plugins {

/// The namespaces that the machine allows.
struct Namespaces {
  bool users = false, processes = false, network = false, mounts = false;
};

/// Enters new namespaces, as many as are allowed. That of processes begins with the next child.
/// In a process with one thread; nothing is written to files but /proc/self.
Namespaces enter_namespaces();

/// A /proc that shows the processes of this namespace only: by a process inside of it.
bool mount_own_proc();

/// Files in /dev/shm, which are memory, get so much room together.
void limit_shared_memory(std::int64_t bytes);

/// None is left in /dev/pts.
void hide_terminals();

}  // namespace ringlab::plugins
