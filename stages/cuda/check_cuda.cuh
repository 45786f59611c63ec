// CUDA errors become ringlab::Error.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "reference/core/error.h"

namespace ringlab::stages::cuda {

/// Environment error naming the call, the rank and CUDA's own words, unless `status` is success.
inline void check_cuda(cudaError_t status, const char* call, int rank) {
  if (status == cudaSuccess) return;
  throw_environment_error(
      {.where = "rank " + std::to_string(rank) + ", " + call,
       .expected = "success",
       .actual = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")",
       .hint = ""});
}

}  // namespace ringlab::stages::cuda
