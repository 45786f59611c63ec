#include "optimized/transport/nccl/nccl_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "reference/core/error.h"
#include "reference/core/machine/shared_library.h"

namespace ringlab::nccl {
namespace {

constexpr int kOldest = 21400, kTooNew = 30000;
constexpr const char* kWanted = "NCCL 2.14 or a newer 2.x";

[[noreturn]] void refuse(const std::string& name, const std::string& found) {
  throw_environment_error(
      {.where = "NCCL, " + name,
       .expected = kWanted,
       .actual = found,
       .hint = "Install libnccl2, or let RINGLAB_NCCL_LIBRARY name a libnccl.so.2"});
}

std::string last_problem() {
  const char* const text = ::dlerror();
  return text ? text : "nothing";
}

/// The path behind a name.
std::string path_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name;
  return known ? map->l_name : name;
}

int version_of(void* handle, const std::string& name) {
  auto* const get_version = reinterpret_cast<int (*)(int*)>(::dlsym(handle, "ncclGetVersion"));
  int version = 0;
  if (!get_version || get_version(&version) != 0) refuse(name, "a library without a NCCL version");
  return version;
}

}  // namespace

std::string library_name() {
  const char* const named = std::getenv(kLibraryVariable);
  return named && *named ? named : "libnccl.so.2";
}

NcclLibrary open_library(const std::string& name) {
  void* const handle = open_shared_library(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) refuse(name, last_problem());
  NcclLibrary library{handle, path_of(handle, name), version_of(handle, name)};
  const bool fits = library.version >= kOldest && library.version < kTooNew;
  if (!fits) refuse(library.file, "NCCL " + version_text(library.version));
  return library;
}

std::string version_text(int version) {
  const int major = version >= 10000 ? 10000 : 1000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace ringlab::nccl
