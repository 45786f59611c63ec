// CUDA errors become ringlab::Error.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "reference/core/machine/machine_error.h"

namespace ringlab::cuda {

/// MachineError naming the place, the call and CUDA's own words, unless `status` is success.
inline void check_cuda(cudaError_t status, const char* call, const std::string& where) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next launch does not report it
  throw MachineError(
      {.where = where + ", " + call,
       .expected = "success",
       .actual = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")"});
}
inline void check_cuda(cudaError_t status, const char* call, int rank) {
  if (status != cudaSuccess) check_cuda(status, call, "rank " + std::to_string(rank));
}

}  // namespace ringlab::cuda
