// Time by a device's own clock. No CUDA header is seen here.
#pragma once

#include <functional>

#include "optimized/cuda/device.h"

namespace ringlab::bench {

void record_event(cuda::Event event, cuda::Stream stream);
/// What is put on the stream from now on waits for the event.
void wait_for_event(cuda::Event event, cuda::Stream stream);

/// A stream, and what it takes to time what is put on it.
class GpuTimer {
 public:
  explicit GpuTimer(int device);

  int device() const { return device_; }
  cuda::Stream stream() const { return stream_.get(); }
  /// Other memory than anybody's takes the place of all that caches hold.
  void flush_caches() const;
  /// Waits for the work, too.
  double seconds_of(const std::function<void(cuda::Stream)>& issue) const;

 private:
  int device_;
  cuda::OwnedStream stream_;
  cuda::OwnedEvent begin_, end_;
  cuda::DeviceTensor<std::byte> flushed_;
};

}  // namespace ringlab::bench
