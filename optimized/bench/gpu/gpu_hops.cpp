#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_attention.h"
#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/device.h"
#include "optimized/cuda/stream_kernels.h"
#include "optimized/ring/streams/device_kernels.h"

namespace ringlab::bench {
namespace {

ring::DeviceKernels<BFloat16> kernels_of(const HopCase& one) {
  const Problem problem = problem_of(one.attention);
  return ring::device_kernels<BFloat16>(ring::choose_kernels(problem, {}, 1).forward, problem.shape,
                                        one.grid);
}

struct FreePinned {
  void operator()(std::byte* memory) const noexcept { cudaFreeHost(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte, FreePinned>;

PinnedMemory pin(std::int64_t bytes) {
  void* memory = nullptr;
  cuda::check_cuda(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault),
                   "cudaHostAlloc", "ringlab_goals gpu");
  return PinnedMemory(static_cast<std::byte*>(memory));
}

class EngineCopies final : public HopCopies {
 public:
  EngineCopies(int device, HopFrom from, std::int64_t bytes) : to_(device, bytes) {
    if (from == HopFrom::device) device_from_ = {device, bytes};
    if (from == HopFrom::host) host_from_ = pin(bytes);
  }

  void issue(int copies, cuda::Stream stream) override {
    const std::byte* const from = host_from_ ? host_from_.get() : device_from_.data();
    for (int copy = 0; copy < copies; ++copy) {
      cuda::check_cuda(cudaMemcpyAsync(to_.data(), from, static_cast<std::size_t>(to_.bytes()),
                                       cudaMemcpyDefault, stream),
                       "cudaMemcpyAsync", "ringlab_goals gpu");
    }
  }

 private:
  cuda::DeviceTensor<std::byte> to_, device_from_;
  PinnedMemory host_from_ = {};
};

std::unique_ptr<HopCopies> copies_of(int device, const HopCase& one) {
  if (one.from == HopFrom::nccl) return make_nccl_copies(device, one.bytes, one.nccl_blocks);
  return std::make_unique<EngineCopies>(device, one.from, one.bytes);
}

class Hops {
 public:
  Hops(const GpuTimer& timer, const HopCase& one)
      : timer_(timer),
        case_(one),
        copying_(cuda::make_stream(timer.device())),
        begin_(cuda::make_timed_event(timer.device())),
        end_(cuda::make_timed_event(timer.device())) {
    if (computes()) {
      attention_ = std::make_unique<GpuAttention>(timer.device(), one.attention, kernels_of(one));
    }
    for (int step = 0; step < 2 * one.steps; ++step) {
      turns_.push_back(cuda::make_event(timer.device()));
    }
    if (copies()) copies_ = copies_of(timer.device(), one);
  }

  std::string kernel() const { return attention_ ? attention_->kernel() : ""; }

  /// All is issued while the stream stands still, so that issuing is not timed.
  double seconds() const {
    timer_.flush_caches();
    cuda::spin(issue_ns() * (2 + case_.steps * (4 + case_.copies)), timer_.stream());
    record_event(begin_.get(), timer_.stream());
    wait_for_event(begin_.get(), copying_.get());
    for (int step = 0; step < case_.steps; ++step) issue_step(step);
    if (case_.part != HopPart::kernel_of_both) record_event(end_.get(), timer_.stream());
    cuda::wait_for_device(timer_.device());
    return cuda::seconds_between(begin_.get(), end_.get());
  }

 private:
  /// Nanoseconds for which the stream stands still for each call: issuing a call takes less.
  std::int64_t issue_ns() const { return case_.from == HopFrom::nccl ? 400'000 : 10'000; }

  bool computes() const { return case_.part != HopPart::copies; }
  bool copies() const { return case_.part != HopPart::kernel; }

  /// Both streams begin the next step together.
  void issue_step(int step) const {
    const cuda::Stream computing = timer_.stream();
    if (copies()) copies_->issue(case_.copies, copying_.get());
    if (computes()) attention_->issue(computing);
    if (case_.part == HopPart::kernel_of_both) record_event(end_.get(), computing);
    if (!copies()) return;
    const auto at = static_cast<std::size_t>(2 * step);
    record_event(turns_[at].get(), copying_.get());
    wait_for_event(turns_[at].get(), computing);
    record_event(turns_[at + 1].get(), computing);
    wait_for_event(turns_[at + 1].get(), copying_.get());
  }

  const GpuTimer& timer_;
  const HopCase case_;
  const cuda::OwnedStream copying_;
  const cuda::OwnedEvent begin_, end_;
  std::vector<cuda::OwnedEvent> turns_;
  std::unique_ptr<GpuAttention> attention_ = {};
  std::unique_ptr<HopCopies> copies_ = {};
};

}  // namespace

GpuWork make_hops(const GpuTimer& timer, const HopCase& one) {
  const auto hops = std::make_shared<Hops>(timer, one);
  return {hops->kernel(), [hops] { return hops->seconds(); }};
}

}  // namespace ringlab::bench
