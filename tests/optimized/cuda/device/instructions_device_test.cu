// Every instruction of device_code.h on a device, against plain matrix products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/hopper/tensor_map.h"
#include "optimized/cuda/kernel_profile.h"
#include "tests/optimized/cuda/device/device_test.h"
#include "tests/optimized/cuda/device/guarded.h"
#include "tests/optimized/cuda/instruction_bodies.h"

namespace ringlab::cuda {
namespace {

template <class Body>
__global__ void __launch_bounds__(Body::kThreads) body_kernel(const __grid_constant__ Body body) {
  body();
}

struct Machine {
  template <class T>
  class Array {
   public:
    explicit Array(const std::vector<T>& values) : memory_(values) {}
    T* data() const { return memory_.data(); }
    std::vector<T> values() const { return memory_.values("array"); }

   private:
    Guarded<T> memory_;
  };
  template <class T>
  static Array<T> of(const std::vector<T>& values) {
    return Array<T>(values);
  }
  static TensorMap map(const BoxedTensor& tensor) { return make_tensor_map(tensor); }
  template <class Body>
  static void run(const Body& body, int blocks = 1) {
    const auto* kernel = reinterpret_cast<const void*>(&body_kernel<Body>);
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    Body::kSharedBytes),
               "cudaFuncSetAttribute", "test");
    body_kernel<Body><<<static_cast<unsigned>(blocks), Body::kThreads, Body::kSharedBytes>>>(body);
    check_cuda(cudaGetLastError(), "launch", "test");
    wait_for_device(0);
  }
};

class Instructions : public DeviceTest<Needs::any_kernel> {};
class HopperInstructions : public DeviceTest<Needs::hopper> {};

#include "tests/optimized/cuda/instruction_trials-inl.h"

}  // namespace
}  // namespace ringlab::cuda
