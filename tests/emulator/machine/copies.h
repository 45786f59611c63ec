// cp.async: copies of 16 bytes by each thread, in groups.
#pragma once

#include "tests/emulator/machine/async_groups.h"

namespace ringlab::cuda::emulator {

/// The target is poison from a copy's issue on and filled at a random later time; the source is
/// read at that time. A fault: writing to the target meanwhile.
class Copies {
 public:
  explicit Copies(int threads) : groups_(threads) {}

  void copy(void* shared, const void* global, bool valid);
  AsyncGroups& groups() { return groups_; }

 private:
  AsyncGroups groups_;
};

namespace instructions {

void copy_16_bytes(void* shared, const void* global, bool valid);
void commit_copies();
void wait_for_copies(int pending);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
