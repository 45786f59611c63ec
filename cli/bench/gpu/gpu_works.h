// Works on a device that are more than one launch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/gpu/gpu.h"
#include "cli/bench/gpu/gpu_timer.h"

namespace ringlab::bench {

/// A kernel on one stream and copies on another, step by step. `timer` outlives what is made here.
GpuWork make_hops(const GpuTimer& timer, const HopCase& one);

/// Copies on a stream, in order, of `bytes` each.
class HopCopies {
 public:
  virtual ~HopCopies() = default;
  virtual void issue(int copies, cuda::Stream stream) = 0;
};
/// By NCCL, from the device to itself, with at most so many thread blocks; 0: as NCCL likes.
/// Environment error where there is no NCCL.
std::unique_ptr<HopCopies> make_nccl_copies(int device, std::int64_t bytes, int most_blocks);

/// The forward pass of a ring of ranks that are all on the first device; DeviceStuck when it takes
/// longer than `timeout_s`.
GpuWork make_ring(const GpuCase& one, int ranks, RingClock clock, double timeout_s);

/// NVIDIA's matrix product, from a library that is looked for when this is called. Environment
/// error when there is none.
GpuWork make_matrix_product(const GpuTimer& timer, std::int64_t n);

}  // namespace ringlab::bench
