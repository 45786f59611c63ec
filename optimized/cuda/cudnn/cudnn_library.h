// cuDNN as this machine has it: found by the dynamic loader while the program runs, so that one
// program serves machines with and without it. No cuDNN header is seen here.
#pragma once

#include <cstddef>
#include <string>

namespace ringlab::cudnn {

/// Loaded once and never closed.
struct CudnnLibrary {
  void* handle = nullptr;
  std::string file;         ///< as the loader found it
  std::size_t version = 0;  ///< as cudnnGetVersion() says it: 91900
};

/// The variable that names another library than libcudnn.so.9.
inline constexpr const char* kLibraryVariable = "RINGLAB_CUDNN_LIBRARY";

/// The variable's value, else "libcudnn.so.9".
std::string library_name();

/// Environment error that says what was expected, what was found and what to do: when there is no
/// such library, when it is not cuDNN, and when it is older than 9.10.2, the first whose attention
/// has windows and corners in every shape, or not of the series 9.
CudnnLibrary open_library(const std::string& name);

/// 91900 as "9.19.0".
std::string version_text(std::size_t version);

}  // namespace ringlab::cudnn
