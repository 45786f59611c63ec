// NCCL as this machine has it: found by the dynamic loader while the program runs, so that one
// program serves machines with and without it. No NCCL header is seen here.
#pragma once

#include <string>

namespace ringlab::nccl {

/// Loaded once and never closed: NCCL does not survive that.
struct NcclLibrary {
  void* handle = nullptr;
  std::string file;  ///< as the loader found it
  int version = 0;   ///< as ncclGetVersion() says it: 22809
};

/// The variable that names another library than libnccl.so.2.
inline constexpr const char* kLibraryVariable = "RINGLAB_NCCL_LIBRARY";

/// The variable's value, else "libnccl.so.2".
std::string library_name();

/// Environment error that says what was expected, what was found and what to do: when there is no
/// such library, when it is not NCCL, and when it is older than 2.14, the first whose communicators
/// need not block, or not of the series 2.
NcclLibrary open_library(const std::string& name);

/// 22809 as "2.28.9". Releases before 2.9 wrote 2807 for 2.8.7.
std::string version_text(int version);

}  // namespace ringlab::nccl
