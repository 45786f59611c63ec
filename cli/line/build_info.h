// Facts about the build of this program.
#pragma once

#include <string>

namespace ringlab::cli {

struct BuildInfo {
  std::string version;
  std::string compiler;    ///< name and version
  std::string build_type;  ///< "Release"
  std::string flags;       ///< of the compiler
  bool cuda = false;       ///< device kernels are compiled in
  std::string cuda_architectures;
  std::string cuda_runtime;  ///< "13.0", empty without kernels
  /// The linker's sum of all that was linked, in hexadecimal; empty where it has written none.
  std::string id;
};
BuildInfo build_info();

}  // namespace ringlab::cli
