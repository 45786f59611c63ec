// The one place that asks whether CUDA was compiled in.
#include "stages/common/device_list.h"

#include <map>

#include "reference/core/error.h"

#ifdef RINGLAB_HAVE_CUDA
#include "stages/cuda/kernels.h"
#endif

namespace ringlab::stages {
namespace {

#ifdef RINGLAB_HAVE_CUDA
CudaStatus find_status() { return cuda::device_status(); }
const std::map<std::type_index, CudaLauncher>& kernels() {
  static const std::map<std::type_index, CudaLauncher> table = cuda::all_kernels();
  return table;
}
#else
CudaStatus find_status() { return {.compiled_in = false, .devices = 0, .text = "not compiled in"}; }
const std::map<std::type_index, CudaLauncher>& kernels() {
  static const std::map<std::type_index, CudaLauncher> table;
  return table;
}
#endif

}  // namespace

CudaStatus cuda_status() {
  static const CudaStatus status = find_status();
  return status;
}

void require_device(DeviceKind device) {
  if (device == DeviceKind::cuda) require_cuda(cuda_status());
}

void require_cuda(const CudaStatus& status) {
  if (!status.unfit.empty()) {
    throw_environment_error(
        {.where = "device cuda",
         .expected = "a GPU that the stages' kernels were compiled for (compute capability " +
                     status.compiled_for + ")",
         .actual = status.unfit,
         .hint =
             "Use --device cpu, or build with -DCMAKE_CUDA_ARCHITECTURES=native on this machine"});
  }
  if (status.devices > 0) return;
  if (status.problem) {
    ErrorParts parts = *status.problem;
    parts.where = "device cuda, " + parts.where;
    throw_environment_error(parts);
  }
  throw_environment_error(
      {.where = "device cuda",
       .expected = "a CUDA device",
       .actual = status.compiled_in ? "none (" + status.text + ")" : "a build without CUDA",
       .hint = status.compiled_in ? "Use --device cpu, or a machine with an NVIDIA GPU and driver"
                                  : "Use --device cpu, or build with -DRINGLAB_CUDA=ON"});
}

CudaLauncher find_cuda_kernel(std::type_index kernel) {
  const auto found = kernels().find(kernel);
  if (found != kernels().end()) return found->second;
  throw_environment_error({.where = "device cuda",
                           .expected = "a kernel with a CUDA build",
                           .actual = std::string("one without: ") + kernel.name(),
                           .hint = "Use --device cpu"});
}

}  // namespace ringlab::stages
