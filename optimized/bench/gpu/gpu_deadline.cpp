// A deadline for all that a device does, around any device.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "optimized/bench/gpu/gpu.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::bench {
namespace {

std::string pass_text(const GpuCase& one) {
  return fmt::format("{}, {}", pass_name(one.pass), one.text());
}

std::string hop_text(const HopCase& one) {
  const char* part = "kernels and copies";
  if (one.part == HopPart::kernel) part = "kernels";
  if (one.part == HopPart::copies) part = "copies";
  const char* by = "from device memory";
  if (one.from == HopFrom::host) by = "from pinned host memory";
  if (one.from == HopFrom::nccl) by = "by NCCL";
  return fmt::format("{} {}, {} steps, {}", part, by, one.steps, one.attention.text());
}

/// Waits for deadlines in a thread beside the work.
class Watch {
 public:
  explicit Watch(GpuDeadline deadline) : deadline_(std::move(deadline)) {}

  /// Names the goal that later work is for.
  void about(const std::string& goal) { goal_ = goal; }

  /// Runs work that may take `times` deadlines.
  template <class Work>
  auto run(const std::string& what, const Work& work, int times = 1) const {
    const double seconds = times * deadline_.seconds;
    const std::jthread watcher([&](const std::stop_token& done) { wait(done, what, seconds); });
    try {
      return work();
    } catch (const DeviceStuck& error) {
      ErrorParts parts = error.parts();
      parts.where = named(what) + ", " + parts.where;
      deadline_.passed(DeviceStuck(parts));
      throw;
    }
  }

 private:
  std::string named(const std::string& what) const {
    return goal_.empty() ? what : goal_ + ", " + what;
  }
  void wait(const std::stop_token& done, const std::string& what, double seconds) const {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, done, std::chrono::duration<double>(seconds), [] { return false; });
    if (done.stop_requested()) return;
    deadline_.passed(DeviceStuck({.where = named(what),
                                  .expected = fmt::format("an end within {} s", seconds),
                                  .actual = "it still going on",
                                  .hint = "Give a longer --timeout where so much is to be done"}));
  }

  const GpuDeadline deadline_;
  std::string goal_ = {};
};

class WatchedGpu final : public Gpu {
 public:
  WatchedGpu(const std::function<std::unique_ptr<Gpu>()>& open, const GpuDeadline& deadline)
      : watch_(deadline), gpu_(watch_.run("opening the first device", open)) {}

  void about(const std::string& goal) override { watch_.about(goal); }
  GpuFacts facts() override {
    return watch_.run("properties of the device", [&] { return gpu_->facts(); });
  }
  double clock_hz() override {
    return watch_.run("clock of the multiprocessors", [&] { return gpu_->clock_hz(); });
  }
  GpuWork matrix_product(std::int64_t n) override {
    return made(fmt::format("matrix product, {}", n), [&] { return gpu_->matrix_product(n); });
  }
  GpuWork attention(const GpuCase& one) override {
    return made(pass_text(one), [&] { return gpu_->attention(one); });
  }
  GpuWork cudnn_attention(const GpuCase& one) override {
    return made(pass_text(one), [&] { return gpu_->cudnn_attention(one); });
  }
  /// A ring's run has a deadline of its own, which says more; around it tensors are moved.
  GpuWork ring(const GpuCase& one, int ranks, RingClock clock) override {
    const std::string what = fmt::format("ring, ranks {}, {}", ranks, one.text());
    return watched(what, watch_.run(what, [&] { return gpu_->ring(one, ranks, clock); }), 2);
  }
  GpuWork hops(const HopCase& one) override {
    return made(hop_text(one), [&] { return gpu_->hops(one); });
  }
  std::vector<GpuVersion> versions(const GpuCase& one) override {
    std::vector<GpuVersion> all =
        watch_.run("versions of the kernel, " + one.text(), [&] { return gpu_->versions(one); });
    for (GpuVersion& version : all) {
      version.work = watched(fmt::format("version {}, {}", version.name, one.text()), version.work);
    }
    return all;
  }

 private:
  template <class Make>
  GpuWork made(const std::string& what, const Make& make) const {
    return watched(what, watch_.run(what, make));
  }
  GpuWork watched(const std::string& what, GpuWork work, int times = 1) const {
    const std::string named = work.kernel.empty() ? what : work.kernel + ", " + what;
    work.seconds = [this, named, times, seconds = std::move(work.seconds)] {
      return watch_.run(named, seconds, times);
    };
    if (work.wrong) {
      work.wrong = [this, named, wrong = std::move(work.wrong)] {
        return watch_.run("results of " + named, wrong);
      };
    }
    return work;
  }

  Watch watch_;
  const std::unique_ptr<Gpu> gpu_;
};

}  // namespace

std::unique_ptr<Gpu> with_deadline(const std::function<std::unique_ptr<Gpu>()>& open,
                                   const GpuDeadline& deadline) {
  return std::make_unique<WatchedGpu>(open, deadline);
}

}  // namespace ringlab::bench
