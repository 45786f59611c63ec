// Measurements on a device in place of goals: the versions of the Hopper kernels against each
// other, and how much the kernel and the copies of a hop slow each other down.
#pragma once

#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_families.h"
#include "optimized/bench/measure/timing.h"

namespace ringlab::bench {

struct LadderRung {
  std::string name;
  std::string what;
  bool is_step = true;
  Spread flops_per_s;
  Spread speed;              ///< over the kernel's, round by round
  std::string failure = {};  ///< why it has no figures; empty when it has
};

/// The versions of one case: first steps, each with one idea more, up to the kernel as it is.
struct Ladder {
  GpuCase attention;
  std::vector<LadderRung> rungs;
};

/// Forward and backward, 64 and 128 channels, full and causal.
std::vector<GpuCase> ladder_cases(bool quick);

/// Times all versions in turn. Environment error where the device has no Hopper kernel.
Ladder measure_ladder(const GpuBench& bench, const GpuCase& one, const TimingOptions& options);

/// Copies by `from` under a kernel with such a grid.
struct OverlapOption {
  HopFrom from = HopFrom::device;
  cuda::ForwardGrid grid = {};
  int nccl_blocks = 0;  ///< as HopCase::nccl_blocks
};

/// Speeds are shares of that of the kernel alone, which stays on all multiprocessors.
struct Overlap {
  OverlapOption option = {};
  Spread kernel_alone = {};
  Spread kernel_under_copies = {};
  Spread copies_alone_bytes_per_s = {};
  Spread copies_under_kernel_bytes_per_s = {};
  std::string failure = {};  ///< why it has no figures; empty when it has
};

/// "cudaMemcpyAsync, pinned host memory", "NCCL, to itself, 2 blocks".
std::string copies_text(const OverlapOption& option);
/// "stays, 8 left free".
std::string text_of(const cuda::ForwardGrid& grid);

/// Copies by copy engines; by NCCL, the kernel with a thread block per tile, or 0, 4, 8 and 16
/// multiprocessors left free, or 8 and NCCL limited to 1, 2, 4 and 8 thread blocks.
std::vector<OverlapOption> overlap_options();

/// Says in `failure` why an option cannot be measured here.
Overlap measure_overlap(const GpuBench& bench, const OverlapOption& option,
                        const GpuCase& attention, const TimingOptions& options);

}  // namespace ringlab::bench
