// load_box: boxes of a tensor by the tensor memory accelerator.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cuda/device_types.h"
#include "tests/emulator/machine/tensor_map.h"

namespace ringlab::cuda::emulator {

struct ThreadBlock;

/// The box in shared memory is poison from the issue on and filled at a random later time; the
/// tensor is read at that time. Faults: a box over unfenced writes or over another box under way,
/// and writes to a box under way.
class Boxes {
 public:
  /// Loads a box into this block's shared memory, whichever block issues it.
  void load(ThreadBlock& block, void* shared, const TensorBox& box, Barrier* barrier);
  std::size_t under_way() const { return targets_.size(); }

 private:
  struct BoxTarget {
    std::uint32_t address;
    std::uint32_t bytes;
  };
  void check_free(const BoxTarget& target) const;
  void end(std::uint32_t address);

  std::vector<BoxTarget> targets_;
};

namespace instructions {

void load_box(void* shared, const TensorMap* map, Barrier* barrier, int head, int row, int channel);
void load_box_for_all(void* shared, const TensorMap* map, Barrier* barrier, int blocks, int head,
                      int row, int channel);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
