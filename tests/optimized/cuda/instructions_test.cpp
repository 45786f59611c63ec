// The kernels with which devices are tested, on the emulated GPU: that they are right themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cuda/kernel_profile.h"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/tensor_map.h"
#include "tests/optimized/cuda/instruction_bodies.h"

namespace ringlab::cuda {
namespace {

struct Machine {
  template <class T>
  class Array {
   public:
    explicit Array(std::vector<T> values) : values_(std::move(values)) {}
    T* data() const { return values_.data(); }
    const std::vector<T>& values() const { return values_; }

   private:
    mutable std::vector<T> values_;  // kernels write to it, as they write to a device's memory
  };
  template <class T>
  static Array<T> of(std::vector<T> values) {
    return Array<T>(std::move(values));
  }
  static TensorMap map(const BoxedTensor& tensor) { return emulator::make_tensor_map(tensor); }
  template <class Body>
  static void run(const Body& body, int blocks = 1) {
    emulator::emulate({.blocks = blocks,
                       .threads = Body::kThreads,
                       .shared_bytes = Body::kSharedBytes,
                       .seed = 4,
                       .blocks_at_once = blocks},
                      [&] { body(); });
  }
};

using Instructions = testing::Test;
class HopperInstructions : public testing::Test {};

#include "tests/optimized/cuda/instruction_trials-inl.h"

}  // namespace
}  // namespace ringlab::cuda
