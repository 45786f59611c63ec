// The functions of NCCL that are used, as pointers into the library that was found. For the few
// files that see nccl.h.
#pragma once

#include <nccl.h>

#include <string>

#include "optimized/transport/nccl/nccl_library.h"

namespace ringlab::nccl {

struct Calls {
  NcclLibrary library;
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
};

/// Errors as open_library(), and when one of the functions is not there.
Calls load_calls(const std::string& name);

/// The functions of library_name(), loaded by whoever comes first.
const Calls& calls();

}  // namespace ringlab::nccl
