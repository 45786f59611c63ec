// A block of threads on a GPU: a phase runs on threadIdx.x, its end is __syncthreads().
// stages/tile/cpu_block.h is the CPU twin and has the rules.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlab::stages::cuda {

/// A value per thread: every thread has its own copy of this object.
template <class T>
struct Register {
  T value{};
  __host__ __device__ T& operator[](int) { return value; }
};

/// Cuts a block's memory into arrays, in the order in which they are asked for.
class SharedMemory {
 public:
  __host__ __device__ explicit SharedMemory(std::byte* memory) : memory_(memory) {}

  template <class T>
  __host__ __device__ T* take(std::int64_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T* array = reinterpret_cast<T*>(memory_ + used_);
    used_ += static_cast<std::size_t>(count) * sizeof(T);
    return array;
  }
  __host__ __device__ std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

class CudaBlock {
 public:
  __device__ explicit CudaBlock(std::byte* memory) : memory_(memory) {}

  // Bodies for the device only: a kernel's operator() is compiled for the host too.
  __host__ __device__ std::int64_t index() const {
#ifdef __CUDA_ARCH__
    return blockIdx.x;
#else
    return 0;
#endif
  }
  __host__ __device__ int threads() const {
#ifdef __CUDA_ARCH__
    return static_cast<int>(blockDim.x);
#else
    return 0;
#endif
  }
  template <class Phase>
  __host__ __device__ void each(Phase phase) {
#ifdef __CUDA_ARCH__
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
#endif
  }
  template <class T>
  __host__ __device__ Register<T> per_thread() const {
    return {};
  }
  template <class T>
  __host__ __device__ T* shared(std::int64_t count) {
    return memory_.take<T>(count);
  }

 private:
  SharedMemory memory_;
};

/// Runs no phase: only finds out how much shared memory a kernel asks for.
class MeasuringBlock {
 public:
  __host__ __device__ explicit MeasuringBlock(int threads) : threads_(threads) {}

  __host__ __device__ std::int64_t index() const { return 0; }
  __host__ __device__ int threads() const { return threads_; }
  template <class Phase>
  __host__ __device__ void each(Phase) {}
  template <class T>
  __host__ __device__ Register<T> per_thread() const {
    return {};
  }
  template <class T>
  __host__ __device__ T* shared(std::int64_t count) {
    return memory_.take<T>(count);
  }
  __host__ __device__ std::size_t shared_bytes() const { return memory_.used(); }

 private:
  int threads_;
  SharedMemory memory_{nullptr};
};

}  // namespace ringlab::stages::cuda
