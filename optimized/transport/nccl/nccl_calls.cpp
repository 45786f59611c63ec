#include "optimized/transport/nccl/nccl_calls.h"

#include <dlfcn.h>

#include "reference/core/error.h"

namespace ringlab::nccl {
namespace {

template <class Function>
void find(const NcclLibrary& library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library.handle, symbol));
  if (function) return;
  throw_environment_error({.where = "NCCL, " + library.file,
                           .expected = std::string("the function ") + symbol,
                           .actual = "NCCL " + version_text(library.version) + " without it",
                           .hint = "Let RINGLAB_NCCL_LIBRARY name another libnccl.so.2"});
}

}  // namespace

Calls load_calls(const std::string& name) {
  Calls calls{.library = open_library(name)};
  find(calls.library, "ncclGetVersion", calls.get_version);
  find(calls.library, "ncclGetErrorString", calls.get_error_string);
  find(calls.library, "ncclGetLastError", calls.get_last_error);
  find(calls.library, "ncclGetUniqueId", calls.get_unique_id);
  find(calls.library, "ncclCommInitRankConfig", calls.init_rank);
  find(calls.library, "ncclCommGetAsyncError", calls.get_async_error);
  find(calls.library, "ncclCommFinalize", calls.finalize);
  find(calls.library, "ncclCommDestroy", calls.destroy);
  find(calls.library, "ncclCommAbort", calls.abort);
  find(calls.library, "ncclGroupStart", calls.group_start);
  find(calls.library, "ncclGroupEnd", calls.group_end);
  find(calls.library, "ncclSend", calls.send);
  find(calls.library, "ncclRecv", calls.receive);
  return calls;
}

const Calls& calls() {
  static const Calls loaded = load_calls(library_name());
  return loaded;
}

}  // namespace ringlab::nccl
