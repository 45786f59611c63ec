// The status of CUDA on this machine, as its driver reports it.
#include <cuda_runtime.h>

#include <set>
#include <utility>

#include "optimized/cuda/driver_check.h"
#include "stages/cuda/kernels.h"

namespace ringlab::stages::cuda {
namespace {

/// Compiled as all kernels of the stages are: where it cannot be loaded, they cannot.
__global__ void do_nothing() {}

std::string capability_text(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// "8.0, 9.0"
std::string compiled_capabilities() {
  std::string text;
  for (const int capability : {__CUDA_ARCH_LIST__}) {  // 900 for 9.0
    text += (text.empty() ? "" : ", ") + capability_text(capability / 100, capability / 10 % 10);
  }
  return text;
}

/// True when the device can run the kernels of this build, just in time compilation included.
bool can_run_kernels(int device) {
  cudaSetDevice(device);
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, do_nothing);
  cudaGetLastError();  // it was dealt with
  return found != cudaErrorNoKernelImageForDevice && found != cudaErrorInvalidDeviceFunction;
}

}  // namespace

CudaStatus device_status() {
  CudaStatus status{.compiled_in = true, .devices = 0, .text = ""};
  status.compiled_for = compiled_capabilities();
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
  std::set<std::pair<int, int>> fit;  // compute capabilities: asking a device takes a while
  for (int device = 0; device < status.devices; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    status.text += (status.text.empty() ? "" : ", ") + std::string(properties.name);
    const std::pair capability{properties.major, properties.minor};
    if (!status.unfit.empty() || fit.contains(capability)) continue;
    if (can_run_kernels(device)) {
      fit.insert(capability);
      continue;
    }
    status.unfit = std::string(properties.name) + ", compute capability " +
                   capability_text(properties.major, properties.minor);
  }
  cudaSetDevice(0);  // as it was
  return status;
}

}  // namespace ringlab::stages::cuda
