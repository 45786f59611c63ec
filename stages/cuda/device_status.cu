// What the CUDA driver says about this machine, and the table of all kernels.
#include <cuda_runtime.h>

#include "optimized/cuda/driver_check.h"
#include "stages/cuda/kernels.h"

namespace ringlab::stages::cuda {

CudaStatus device_status() {
  CudaStatus status{.compiled_in = true, .devices = 0, .text = ""};
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (const auto problem = ringlab::cuda::driver_problem(driver, runtime)) {
    status.text = problem->where + ": " + problem->actual;
    status.problem = problem;
    return status;
  }
  const cudaError_t found = cudaGetDeviceCount(&status.devices);
  if (found != cudaSuccess) {
    status.devices = 0;
    status.text = cudaGetErrorString(found);
    return status;
  }
  for (int device = 0; device < status.devices; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    status.text += (status.text.empty() ? "" : ", ") + std::string(properties.name);
  }
  return status;
}

Launchers all_launchers() {
  Launchers table;
  for (const auto add : {add_broadcast, add_online_softmax, add_flash_blocks, add_merge, add_ring,
                         add_causal_ring, add_chunk_kernel}) {
    add(table);
  }
  return table;
}

}  // namespace ringlab::stages::cuda
