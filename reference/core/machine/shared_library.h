// Libraries that are looked for while the program runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringlab {

/// Folders of NVIDIA's libraries in Python packages (nvidia/…/lib): of each python3 on PATH, in its
/// order, and of this user's own packages.
std::vector<std::filesystem::path> python_library_folders();

/// dlopen() from where the loader looks; else, unless the name is a path, from
/// python_library_folders(). Null when no library opens: dlerror() says why.
void* open_shared_library(const std::string& name, int flags);

}  // namespace ringlab
