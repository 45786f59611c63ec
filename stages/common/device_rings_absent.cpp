// In place of device_rings.cpp where CUDA is not compiled in: says so, after all other errors.
#include "stages/common/device_rings.h"
#include "stages/common/run_ranks.h"

namespace ringlab::stages {
namespace {

RunResult refuse(const AttentionInput& input, const RunOptions& options) {
  return run_together(input, options, [](auto, auto) {});  // no further than to require_device()
}

}  // namespace

RunResult overlapped_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return refuse(input, options);
}
RunResult balanced_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return refuse(input, options);
}
RunResult skipping_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return refuse(input, options);
}
RunResult overlapped_causal_ring_on_gpus(const AttentionInput& input, const RunOptions& options) {
  return refuse(input, options);
}

}  // namespace ringlab::stages
