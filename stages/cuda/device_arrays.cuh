// Device copies of a kernel's arrays.
#pragma once

#include <type_traits>
#include <vector>

#include "optimized/cuda/check_cuda.h"
#include "stages/tile/array.h"

namespace ringlab::stages::cuda {

using ringlab::cuda::check_cuda;

/// Owns plain device allocations for one launch; they are freed when it goes.
class DeviceArrays {
 public:
  explicit DeviceArrays(int rank) : rank_(rank) {}
  ~DeviceArrays() {
    for (const Copy& copy : copies_) cudaFree(copy.device);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  /// `bytes` of device memory; null when there are none to hold.
  void* allocate(std::size_t bytes) {
    void* device = nullptr;
    if (bytes == 0) return device;
    check_cuda(cudaMalloc(&device, bytes), "cudaMalloc", rank_);
    copies_.push_back({device, nullptr, 0});
    return device;
  }

  /// Copies an array to the device and makes it point there. What is not const comes back.
  template <class T>
  void move_in(Array<T>& array) {
    const std::size_t bytes = static_cast<std::size_t>(array.size) * sizeof(T);
    void* device = allocate(bytes);
    if (device != nullptr) {
      check_cuda(cudaMemcpy(device, array.data, bytes, cudaMemcpyHostToDevice),
                 "cudaMemcpy to the device", rank_);
      if constexpr (!std::is_const_v<T>) copies_.back() = {device, array.data, bytes};
    }
    array.data = static_cast<T*>(device);
  }

  void copy_back() const {
    for (const Copy& copy : copies_) {
      if (copy.host == nullptr) continue;
      check_cuda(cudaMemcpy(copy.host, copy.device, copy.bytes, cudaMemcpyDeviceToHost),
                 "cudaMemcpy from the device", rank_);
    }
  }

 private:
  struct Copy {
    void* device;
    void* host;  ///< where outputs go back to
    std::size_t bytes;
  };
  int rank_;
  std::vector<Copy> copies_;
};

}  // namespace ringlab::stages::cuda
