#include <cuda_runtime.h>
#include <sys/mman.h>

#include <utility>

#include "optimized/cuda/lost_wait.h"
#include "tests/optimized/cuda/device/waits_heard.h"

namespace ringlab::cuda {
namespace {

constexpr std::size_t kBytes = 4096;

LostWait* memory = nullptr;

/// Devices see memory of the host where the host does, or this cannot be used.
std::string map_memory() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address is what kernels know
  void* const wanted = reinterpret_cast<void*>(kLostWaitAddress);
  void* const got = ::mmap(wanted, kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) return "its address is taken";
  const cudaError_t registered =
      cudaHostRegister(got, kBytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
  void* seen = nullptr;
  if (registered != cudaSuccess || cudaHostGetDevicePointer(&seen, got, 0) != cudaSuccess) {
    return cudaGetErrorString(cudaGetLastError());
  }
  if (seen != got) return "devices see the host's memory at other addresses";
  memory = static_cast<LostWait*>(got);
  return "";
}

}  // namespace

std::string hear_of_lost_waits() {
  static const std::string problem = map_memory();
  return problem;
}

std::string lost_wait() {
  if (memory == nullptr) return "";
  // The device wrote it, so the compiler must not remember what it was.
  auto* const now = static_cast<volatile LostWait*>(memory);
  const LostWait lost{now->letters, now->place};
  now->letters = 0;
  return text_of(lost);
}

}  // namespace ringlab::cuda
