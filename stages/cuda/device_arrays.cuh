// Device copies of a kernel's arrays.
#pragma once

#include <type_traits>
#include <vector>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/device.h"
#include "stages/tile/array.h"

namespace ringlab::stages::cuda {

using ringlab::cuda::check_cuda;

/// Owns plain device allocations for one launch; they are freed when it goes.
class DeviceArrays {
 public:
  explicit DeviceArrays(int rank) : rank_(rank) {}
  /// `bytes` of memory of the current device; null when there are none to hold.
  void* allocate(std::size_t bytes) {
    memory_.push_back(
        ringlab::cuda::allocate(ringlab::cuda::current_device(), static_cast<std::int64_t>(bytes)));
    return memory_.back().get();
  }

  /// Copies an array to the device and makes it point there. What is not const comes back.
  template <class T>
  void move_in(Array<T>& array) {
    const std::size_t bytes = static_cast<std::size_t>(array.size) * sizeof(T);
    void* device = allocate(bytes);
    if (device != nullptr) {
      check_cuda(cudaMemcpy(device, array.data, bytes, cudaMemcpyHostToDevice),
                 "cudaMemcpy to the device", rank_);
      if constexpr (!std::is_const_v<T>) copies_.push_back({device, array.data, bytes});
    }
    array.data = static_cast<T*>(device);
  }

  void copy_back() const {
    for (const Copy& copy : copies_) {
      check_cuda(cudaMemcpy(copy.host, copy.device, copy.bytes, cudaMemcpyDeviceToHost),
                 "cudaMemcpy from the device", rank_);
    }
  }

 private:
  /// An output, and where it goes back to.
  struct Copy {
    void* device;
    void* host;
    std::size_t bytes;
  };
  int rank_;
  std::vector<ringlab::cuda::OwnedMemory> memory_;
  std::vector<Copy> copies_;
};

}  // namespace ringlab::stages::cuda
