#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "cli/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/device.h"

namespace ringlab::bench {
namespace {

struct FreePinned {
  void operator()(std::byte* memory) const noexcept { cudaFreeHost(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte, FreePinned>;

PinnedMemory pin(std::int64_t bytes) {
  void* memory = nullptr;
  cuda::check_cuda(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault),
                   "cudaHostAlloc", "bench gpu");
  return PinnedMemory(static_cast<std::byte*>(memory));
}

class EngineCopies final : public HopCopies {
 public:
  EngineCopies(int device, HopFrom from, std::int64_t bytes) : to_(device, bytes) {
    if (from == HopFrom::device) device_from_ = {device, bytes};
    if (from == HopFrom::host) host_from_ = pin(bytes);
  }

  void issue(int copies, cuda::Stream stream) override {
    const std::byte* const from = host_from_ ? host_from_.get() : device_from_.data();
    for (int copy = 0; copy < copies; ++copy) {
      cuda::check_cuda(cudaMemcpyAsync(to_.data(), from, static_cast<std::size_t>(to_.bytes()),
                                       cudaMemcpyDefault, stream),
                       "cudaMemcpyAsync", "bench gpu");
    }
  }

 private:
  cuda::DeviceTensor<std::byte> to_, device_from_;
  PinnedMemory host_from_ = {};
};

}  // namespace

std::unique_ptr<HopCopies> make_engine_copies(int device, HopFrom from, std::int64_t bytes) {
  return std::make_unique<EngineCopies>(device, from, bytes);
}

}  // namespace ringlab::bench
