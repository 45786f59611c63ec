// Walls around code that others wrote: its process puts them up before any of that code runs.
#pragma once

#include <cstdint>
#include <string>

#include "property_tests/plugins/file_walls.h"

namespace ringlab::plugins {

enum class Processes { refused, allowed };

/// Variables of the environment that lead foreign code to memory of its own for files, where the
/// machine gives it mounts.
inline constexpr const char* kScratchVariables[] = {"TMPDIR", "HOME", "XDG_CACHE_HOME"};

/// Liberties of foreign code.
struct Confinement {
  std::int64_t address_bytes = 0;  ///< address space; 0: no limit
  std::int64_t private_bytes = 0;  ///< private memory that can be written; 0: no limit
  std::int64_t file_bytes = std::int64_t{1} << 30;  ///< size of a file, and of all files in memory
  Processes processes = Processes::refused;         ///< new processes and other programs
  FileLiberties files = {};  ///< `scratch` counts where the machine gives no memory for files
};

/// Called in a process with one thread, whose descriptors 0 to kSocket are in place. It returns in
/// a new process behind the walls, with the names of walls that this machine could not give ("" for
/// none missing); the process that called stays outside as the supervisor of the new one.
///
/// The new process sees no process but its own descendants, no network but a loopback of its own,
/// no descriptor above kSocket. It reads the system's libraries and `wanted.files`, writes in memory
/// of its own, or in the scratch folder, alone ($TMPDIR, $HOME), gains no privileges and has none.
/// It ends, with whatever it started, when the other end of the socket is closed: by its owner or
/// with it.
std::string confine(const Confinement& wanted);

}  // namespace ringlab::plugins
