#include <utility>
#include <vector>

#include "cli/bench/gpu_attention.h"
#include "cli/bench/gpu_works.h"
#include "optimized/cuda/check_cuda.h"
#include "optimized/cuda/stream_kernels.h"

namespace ringlab::bench {
namespace {

struct FreePinned {
  void operator()(std::byte* memory) const noexcept { cudaFreeHost(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte, FreePinned>;

PinnedMemory pin(std::int64_t bytes) {
  void* memory = nullptr;
  cuda::check_cuda(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault),
                   "cudaHostAlloc", "bench gpu");
  return PinnedMemory(static_cast<std::byte*>(memory));
}

class Hops {
 public:
  Hops(const GpuTimer& timer, const HopCase& one)
      : timer_(timer),
        case_(one),
        copying_(cuda::make_stream(timer.device())),
        begin_(make_timed_event(timer.device())),
        end_(make_timed_event(timer.device())) {
    if (computes()) attention_.emplace(timer.device(), one.attention);
    for (int step = 0; step < 2 * one.steps; ++step) {
      turns_.push_back(cuda::make_event(timer.device()));
    }
    if (!copies()) return;
    to_ = {timer.device(), one.bytes};
    if (one.from == HopFrom::device) device_from_ = {timer.device(), one.bytes};
    if (one.from == HopFrom::host) host_from_ = pin(one.bytes);
  }

  std::string kernel() const { return attention_ ? attention_->kernel() : ""; }

  /// All is issued while the stream stands still, so that issuing is not timed.
  double seconds() const {
    timer_.flush_caches();
    cuda::spin(kIssue_ns * (2 + case_.steps * (4 + case_.copies)), timer_.stream());
    record_event(begin_.get(), timer_.stream());
    wait_for_event(begin_.get(), copying_.get());
    for (int step = 0; step < case_.steps; ++step) issue_step(step);
    if (case_.part != HopPart::kernel_of_both) record_event(end_.get(), timer_.stream());
    cuda::wait_for_device(timer_.device());
    return seconds_between(begin_.get(), end_.get());
  }

 private:
  static constexpr std::int64_t kIssue_ns = 10'000;  // a call takes less

  bool computes() const { return case_.part != HopPart::copies; }
  bool copies() const { return case_.part != HopPart::kernel; }

  /// Both streams begin the next step together.
  void issue_step(int step) const {
    const cuda::Stream computing = timer_.stream();
    if (copies()) issue_copies();
    if (computes()) attention_->issue(computing);
    if (case_.part == HopPart::kernel_of_both) record_event(end_.get(), computing);
    if (!copies()) return;
    const auto at = static_cast<std::size_t>(2 * step);
    record_event(turns_[at].get(), copying_.get());
    wait_for_event(turns_[at].get(), computing);
    record_event(turns_[at + 1].get(), computing);
    wait_for_event(turns_[at + 1].get(), copying_.get());
  }
  void issue_copies() const {
    const std::byte* const from =
        case_.from == HopFrom::device ? device_from_.data() : host_from_.get();
    for (int copy = 0; copy < case_.copies; ++copy) {
      cuda::check_cuda(cudaMemcpyAsync(to_.data(), from, static_cast<std::size_t>(case_.bytes),
                                       cudaMemcpyDefault, copying_.get()),
                       "cudaMemcpyAsync", "bench gpu");
    }
  }

  const GpuTimer& timer_;
  const HopCase case_;
  const cuda::OwnedStream copying_;
  const cuda::OwnedEvent begin_, end_;
  std::vector<cuda::OwnedEvent> turns_;
  std::optional<GpuAttention> attention_ = {};
  cuda::DeviceTensor<std::byte> to_, device_from_;
  PinnedMemory host_from_ = {};
};

}  // namespace

GpuWork make_hops(const GpuTimer& timer, const HopCase& one) {
  const auto hops = std::make_shared<Hops>(timer, one);
  return {hops->kernel(), [hops] { return hops->seconds(); }};
}

}  // namespace ringlab::bench
