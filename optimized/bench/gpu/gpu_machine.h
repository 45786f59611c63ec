// Measured speeds of a device, for simulations of machines that have it.
#pragma once

#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_families.h"
#include "optimized/bench/measure/timing.h"

namespace ringlab::bench {

/// Both passes of a case, operations a second, medians.
struct PassSpeeds {
  GpuCase attention = {};
  double forward = 0;
  double backward = 0;
  std::string failure = {};  ///< why there are no speeds; empty when there are
};

/// 64 and 128 channels, full and causal, three lengths.
std::vector<GpuCase> speed_cases(bool quick);

/// Times the passes in turn. A failure, or wrong results, are told in `failure`.
PassSpeeds measure_passes(const GpuBench& bench, const GpuCase& one, const TimingOptions& options);

/// Further figures for simulations; 0 (but for shares) where one could not be measured.
struct DeviceFigures {
  double block_s = 0;             ///< one block of 128 queries and keys
  double product_flops = 0;       ///< per second, of large products of bf16
  double memory_bytes_per_s = 0;  ///< what a copy reads and writes
  double host_bytes_per_s = 0;    ///< of copies from pinned memory
  double transfer_share = 0;      ///< of a kernel's speed, what copies on the device take
};
DeviceFigures measure_figures(const GpuBench& bench, const TimingOptions& options);

}  // namespace ringlab::bench
