// store_box, add_box: boxes of shared memory to a tensor by the tensor memory accelerator.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "optimized/cuda/device_types.h"
#include "tests/emulator/machine/async_groups.h"
#include "tests/emulator/machine/tensor_map.h"

namespace ringlab::cuda::emulator {

/// The box in shared memory is read, and the tensor written, at a random time after the issue;
/// every second box only once its thread waits for it. Faults: a box that holds unfenced writes, or
/// that changes before it has been read.
class BoxStores {
 public:
  explicit BoxStores(int threads) : groups_(threads), held_(static_cast<std::size_t>(threads)) {}

  enum class Kind { replaces, adds };
  void store(Kind kind, const TensorBox& box, const void* shared);
  void wait(int pending);
  AsyncGroups& groups() { return groups_; }

 private:
  AsyncGroups groups_;
  std::vector<std::vector<std::function<void()>>> held_;  ///< by thread
  int issued_ = 0;
};

namespace instructions {

void store_box(const TensorMap* map, const void* shared, int head, int row, int channel);
void add_box(const TensorMap* map, const void* shared, int head, int row, int channel);
void commit_boxes();
void wait_for_boxes(int pending);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
