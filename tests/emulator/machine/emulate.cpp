#include "tests/emulator/machine/emulate.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "reference/core/error.h"
#include "tests/emulator/machine/block.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kMaxSharedBytes = 227 << 10;      // of a block on sm_90
constexpr std::size_t kStackBytes = 128 << 10;  // of a thread

void check_launch(const Launch& launch) {
  const bool fits = launch.threads >= 32 && launch.threads <= 1024 && launch.threads % 32 == 0 &&
                    launch.blocks >= 0 && launch.blocks_at_once >= 1 && launch.cluster >= 1 &&
                    launch.blocks % launch.cluster == 0 && launch.shared_bytes >= 0 &&
                    launch.shared_bytes <= kMaxSharedBytes;
  if (fits) return;
  throw_usage_error(
      {.where = "emulated GPU",
       .expected = "whole warps up to 1024 threads, whole clusters, at most 232448 bytes of shared "
                   "memory",
       .actual = fmt::format("{} blocks of {} threads with {} bytes, {} at once, clusters of {}",
                             launch.blocks, launch.threads, launch.shared_bytes,
                             launch.blocks_at_once, launch.cluster)});
}

/// A grid that runs.
class EmulatedMachine {
 public:
  EmulatedMachine(const Launch& launch, const std::function<void()>& thread_code)
      : launch_(launch), code_(thread_code), scheduler_(launch.seed) {}

  void run() {
    try {
      run_blocks();
    } catch (...) {
      keep_failure();
    }
    // Threads that have begun hold objects on their stacks, so they are unwound before they go.
    if (!failure_) return;
    unwind();
    std::rethrow_exception(failure_);
  }

 private:
  void run_blocks() {
    // Runs some blocks at a time, as multiprocessors do: the next begins when one has ended.
    do {
      start_blocks();
      // A step is a thread's run up to where it waits or lets others go, or one asynchronous job.
      while (!failure_ && scheduler_.step()) end_blocks();
      if (!failure_ && !resident_.empty()) throw_deadlock();
    } while (!failure_ && next_ < launch_.blocks);
  }

  void start_blocks() {
    while (next_ < launch_.blocks && static_cast<int>(resident_.size()) < launch_.blocks_at_once) {
      const auto cluster = std::make_shared<ThreadCluster>();
      for (int rank = 0; rank < launch_.cluster; ++rank) start_block(cluster);
    }
  }

  void start_block(const std::shared_ptr<ThreadCluster>& cluster) {
    resident_.push_back(std::make_unique<ThreadBlock>(scheduler_, launch_, next_++, cluster));
    ThreadBlock& block = *resident_.back();
    for (Thread& thread : block.threads) {
      thread.fibre = &block.fibres.emplace_back(stacks_, [this, &thread] { run_thread(thread); });
    }
    // Blocks of a cluster are there together, but one may do its first step much later than another.
    const auto begin = [this, &block] {
      for (Thread& thread : block.threads) scheduler_.add(&thread);
    };
    if (launch_.cluster == 1) return begin();
    scheduler_.post(begin);
  }

  void end_blocks() {
    // Called between steps only: no code of a block that has ended runs. Clusters go as a whole.
    const auto is_over = [](const auto& block) { return block->cluster->has_ended(); };
    if (!std::ranges::any_of(resident_, is_over)) return;
    // Parts the blocks before it erases any: a cluster is asked while all of its blocks exist.
    const auto over = std::stable_partition(resident_.begin(), resident_.end(),
                                            [&](const auto& block) { return !is_over(block); });
    resident_.erase(over, resident_.end());
    start_blocks();
  }

  void run_thread(const Thread& thread) {
    try {
      code_();
      // Faults if the thread left work under way, such as products that it never waited for.
      thread.block->end_thread(thread);
    } catch (const Abandoned&) {  // unwound, because another thread has failed
    } catch (...) {
      keep_failure();
    }
  }

  void keep_failure() {
    // The first failure is the reason; later ones follow from it.
    if (!failure_) failure_ = std::current_exception();
  }

  [[noreturn]] void throw_deadlock() const {
    std::string text = "deadlock: every thread waits";
    for (const auto& block : resident_) text += block->describe_waiting();
    throw KernelFault(text);
  }

  /// Makes every thread that has begun throw where it stands, so that its stack is unwound.
  void unwind() {
    scheduler_.abandon();
    for (const auto& block : resident_) {
      for (Thread& thread : block->threads) {
        if (thread.fibre->has_begun() && !thread.fibre->has_ended()) scheduler_.resume(&thread);
      }
    }
  }

  const Launch& launch_;
  const std::function<void()>& code_;
  Scheduler scheduler_;
  Stacks stacks_ = make_stacks(kStackBytes);
  std::vector<std::unique_ptr<ThreadBlock>> resident_;
  int next_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void emulate(const Launch& launch, const std::function<void()>& thread_code) {
  check_launch(launch);
  EmulatedMachine(launch, thread_code).run();
}

}  // namespace ringlab::cuda::emulator
