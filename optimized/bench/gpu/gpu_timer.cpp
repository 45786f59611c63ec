#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/stream_kernels.h"

namespace ringlab::bench {
namespace {

/// More than any second-level cache holds.
constexpr std::int64_t kFlushedBytes = 256 << 20;
/// Time that the stream stands still, for all contenders alike, also in torch_peer.py. A call
/// of cuDNN takes the host 40 to 60 µs; overwriting caches, about 100 µs, is too little beside it.
constexpr std::int64_t kHold_ns = 200'000;
constexpr const char* kWhere = "ringlab_goals gpu";

}  // namespace

void record_event(cuda::Event event, cuda::Stream stream) {
  cuda::check_cuda(cudaEventRecord(event, stream), "cudaEventRecord", kWhere);
}

void wait_for_event(cuda::Event event, cuda::Stream stream) {
  cuda::check_cuda(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent", kWhere);
}

GpuTimer::GpuTimer(int device)
    : device_(device),
      stream_(cuda::make_stream(device)),
      begin_(cuda::make_timed_event(device)),
      end_(cuda::make_timed_event(device)),
      flushed_(device, kFlushedBytes) {}

void GpuTimer::flush_caches() const {
  cuda::fill_zeros(device_, flushed_.data(), flushed_.bytes(), stream());
}

double GpuTimer::seconds_of(const std::function<void(cuda::Stream)>& issue) const {
  flush_caches();
  cuda::spin(kHold_ns, stream());
  record_event(begin_.get(), stream());
  issue(stream());
  record_event(end_.get(), stream());
  cuda::wait_for_device(device_);
  return cuda::seconds_between(begin_.get(), end_.get());
}

}  // namespace ringlab::bench
