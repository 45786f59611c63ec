// In place of device_rings.cpp where CUDA is not compiled in: says so, after all other errors.
#include "stages/common/device_rings.h"
#include "stages/common/run_ranks.h"

namespace ringlab::stages {

RunResult run_overlapped_ring_on_devices(const AttentionInput& input, const RunOptions& options) {
  return run_together(input, options, [](auto, auto) {});
}

}  // namespace ringlab::stages
