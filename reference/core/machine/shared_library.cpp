#include "reference/core/machine/shared_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "reference/core/machine/folder.h"

namespace ringlab {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void add_once(std::vector<fs::path>& all, const fs::path& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

/// Prefixes of every bin/python3 on PATH: by the name there, which tells a virtual environment, and
/// with links followed; their local/, where Debian's pip installs; and ~/.local.
std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  std::istringstream folders(variable("PATH"));
  std::error_code problem;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (!fs::path(folder).is_absolute() || !fs::exists(python, problem)) continue;
    add_once(prefixes, fs::path(folder).parent_path());
    add_once(prefixes, fs::path(folder).parent_path() / "local");
    const fs::path real = fs::canonical(python, problem);
    if (!problem) add_once(prefixes, real.parent_path().parent_path());
  }
  const std::string home = variable("HOME");
  if (!home.empty()) add_once(prefixes, fs::path(home) / ".local");
  return prefixes;
}

/// Adds the folders lib{,64}/python3*/…-packages/nvidia/*/lib of one prefix.
void add_folders(std::vector<fs::path>& folders, const fs::path& prefix) {
  std::error_code problem;
  for (const char* const lib : {"lib", "lib64"}) {
    for (const std::string& python : names_in(prefix / lib)) {
      if (!python.starts_with("python3")) continue;
      for (const char* const packages : {"site-packages", "dist-packages"}) {
        const fs::path nvidia = prefix / lib / python / packages / "nvidia";
        for (const std::string& package : names_in(nvidia)) {
          const fs::path folder = nvidia / package / "lib";
          if (fs::is_directory(folder, problem)) add_once(folders, folder);
        }
      }
    }
  }
}

}  // namespace

std::vector<fs::path> python_library_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& prefix : python_prefixes()) add_folders(folders, prefix);
  return folders;
}

void* open_shared_library(const std::string& name, int flags) {
  if (void* const found = ::dlopen(name.c_str(), flags)) return found;
  if (name.find('/') != std::string::npos) return nullptr;
  std::error_code problem;
  for (const fs::path& folder : python_library_folders()) {
    const fs::path file = folder / name;
    if (!fs::exists(file, problem)) continue;
    if (void* const found = ::dlopen(file.c_str(), flags)) return found;
  }
  return nullptr;
}

}  // namespace ringlab
