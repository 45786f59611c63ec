// Building blocks of works on a device, and works of more than one launch. Includes no CUDA header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu.h"
#include "optimized/cuda/device.h"
#include "reference/core/dtype.h"

namespace ringlab::bench {

/// Standard normal numbers, the same for the same seed.
void fill_normal(BFloat16* to, std::int64_t count, std::uint32_t seed, cuda::Stream stream);

/// Counts the cycles of a multiprocessor, to[0], in to[1] nanoseconds, about 2 million.
void sample_clock(std::int64_t* to, cuda::Stream stream);

void record_event(cuda::Event event, cuda::Stream stream);
/// Makes work put on the stream from now on wait for the event.
void wait_for_event(cuda::Event event, cuda::Stream stream);

/// A stream whose work is timed by the device's own clock.
class GpuTimer {
 public:
  explicit GpuTimer(int device);

  int device() const { return device_; }
  cuda::Stream stream() const { return stream_.get(); }
  /// Overwrites the device's caches with memory that no work uses.
  void flush_caches() const;
  /// Seconds of the work that `issue` puts on the stream. The device stands still until all of it
  /// is issued, so that the host's time is not in them. Waits for the work.
  double seconds_of(const std::function<void(cuda::Stream)>& issue) const;

 private:
  int device_;
  cuda::OwnedStream stream_;
  cuda::OwnedEvent begin_, end_;
  cuda::DeviceTensor<std::byte> flushed_;
};

/// A kernel on one stream and copies on another, step by step. `timer` outlives the work.
GpuWork make_hops(const GpuTimer& timer, const HopCase& one);

/// Copies on a stream, in order, of `bytes` each.
class HopCopies {
 public:
  virtual ~HopCopies() = default;
  virtual void issue(int copies, cuda::Stream stream) = 0;
};
/// Copies by NCCL, from the device to itself, with `most_blocks` thread blocks at most; 0: as NCCL
/// likes. Environment error where there is no NCCL.
std::unique_ptr<HopCopies> make_nccl_copies(int device, std::int64_t bytes, int most_blocks);

/// The forward pass of a ring of ranks that are all on the first device; DeviceStuck when it takes
/// longer than `timeout_s`.
GpuWork make_ring(const GpuCase& one, int ranks, RingClock clock, double timeout_s);

/// NVIDIA's matrix product, from a library that is looked for when this is called. Environment
/// error when there is none.
GpuWork make_matrix_product(const GpuTimer& timer, std::int64_t n);

}  // namespace ringlab::bench
