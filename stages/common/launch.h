// Runs a kernel (a tile program, see stages/tile/cpu_block.h) on the device of this run.
#pragma once

#include <algorithm>

#include "stages/common/device_list.h"
#include "stages/common/rank_problem.h"
#include "stages/tile/cpu_block.h"

namespace ringlab::stages {

/// `blocks` blocks of options.tile_queries threads; returns when all have ended. On the CPU the
/// blocks run one after another on this rank's thread, and their shared memory is metered.
template <class Element, class Kernel>
void launch(RankProblem<Element>& r, std::int64_t blocks, const Kernel& kernel) {
  const int threads = static_cast<int>(r.options.tile_queries);
  if (blocks == 0) return;
  if (r.options.device == DeviceKind::cuda) {
    const CudaLauncher run = find_cuda_kernel(typeid(Kernel));
    const CudaLaunch on_cuda{.stage = std::string(r.stage),
                             .blocks = blocks,
                             .threads = threads,
                             .rank = r.rank(),
                             .timeout_s = r.options.timeout_s};
    return run(&kernel, on_cuda);
  }
  std::int64_t shared_bytes = 0;
  for (std::int64_t index = 0; index < blocks; ++index) {
    CpuBlock block(index, threads, r.options.thread_order_seed);
    kernel(block);
    shared_bytes = std::max(shared_bytes, block.shared_bytes());
  }
  r.memory.add(shared_bytes);
  r.memory.remove(shared_bytes);
}

}  // namespace ringlab::stages
