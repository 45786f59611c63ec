// Libraries that are looked for while the program runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringlab {

/// Where packages of Python have NVIDIA's libraries (nvidia/…/lib): of each python3 on PATH, in its
/// order, and of this user's own packages.
std::vector<std::filesystem::path> python_library_folders();

/// dlopen(): where the loader looks, and if that is nowhere and the name is not a path, in
/// python_library_folders(). Null when there is none: dlerror() says why.
void* open_shared_library(const std::string& name, int flags);

}  // namespace ringlab
