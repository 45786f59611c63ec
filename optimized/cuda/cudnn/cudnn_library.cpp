#include "optimized/cuda/cudnn/cudnn_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "reference/core/error.h"
#include "reference/core/machine/shared_library.h"

namespace ringlab::cudnn {
namespace {

constexpr std::size_t kOldest = 91002, kTooNew = 100000;

[[noreturn]] void refuse(const std::string& name, const std::string& found) {
  throw_environment_error({.where = "cuDNN, " + name,
                           .expected = "cuDNN 9.10.2 or a newer 9.x",
                           .actual = found,
                           .hint = "Install libcudnn9-cuda, or let RINGLAB_CUDNN_LIBRARY name a "
                                   "libcudnn.so.9"});
}

std::string loader_problem() {
  const char* const text = ::dlerror();
  return text ? text : "nothing";
}

/// The path behind a name.
std::string file_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name;
  return known ? map->l_name : name;
}

}  // namespace

std::string library_name() {
  const char* const named = std::getenv(kLibraryVariable);
  return named && *named ? named : "libcudnn.so.9";
}

CudnnLibrary open_library(const std::string& name) {
  // Loaded globally: parts of cuDNN find each other by names of loaded libraries.
  void* const handle = open_shared_library(name, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) refuse(name, loader_problem());
  auto* const get_version = reinterpret_cast<std::size_t (*)()>(::dlsym(handle, "cudnnGetVersion"));
  if (!get_version) refuse(name, "a library without a cuDNN version");
  CudnnLibrary library{handle, file_of(handle, name), get_version()};
  const bool fits = library.version >= kOldest && library.version < kTooNew;
  if (!fits) refuse(library.file, "cuDNN " + version_text(library.version));
  return library;
}

std::string version_text(std::size_t version) {
  const std::size_t major = version >= 90000 ? 10000 : 1000;  // 8907 was 8.9.7
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace ringlab::cudnn
