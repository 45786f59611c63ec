#include "tests/emulator/machine/scheduler.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "optimized/cuda/lost_wait.h"
#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/here.h"

namespace ringlab::cuda::emulator {
namespace {

thread_local Thread* running = nullptr;

// Chances that asynchronous work is done next: never unless nothing else can go on, late, soon, at
// once. A seed has one of them for its whole run.
constexpr std::array kEagerness{0.0, 0.01, 0.2, 1.0};
// Threads that are drawn before the one of the highest priority runs: 1 is a uniform order, more of
// them let favoured warps run ahead.
constexpr std::array kCandidates{1, 3, 8, 16};
// Picks until other warps are favoured: some steps of each thread of a block, or whole tiles.
constexpr std::array kPicksPerMood{512, 16384};
constexpr std::size_t kWarps = 32;  // of the largest block
constexpr std::size_t kBlocks = 4;  // neighbours are favoured one without the other

}  // namespace

constinit thread_local ThreadPlace here = {};

void let_others_run() { running->block->scheduler.maybe_yield(); }

Thread* running_thread() { return running; }

void throw_fault(const std::string& text) {
  if (!running) throw KernelFault(text);
  throw KernelFault(
      fmt::format("block {}, thread {}: {}", running->block->index, running->index, text));
}

std::string Waiting::describe() const {
  const std::string waiting = format ? fmt::format(fmt::runtime(format), first, second) : "nothing";
  return name != 0 ? name_of_wait(name) + ", " + waiting : waiting;
}

Scheduler::Scheduler(std::uint64_t seed)
    : random_(seed * 0x9e3779b97f4a7c15u + 1),  // seeds that follow each other begin far apart
      eagerness_(kEagerness[below(kEagerness.size())]),
      candidates_(kCandidates[below(kCandidates.size())]),
      picks_per_mood_(kPicksPerMood[below(kPicksPerMood.size())]),
      priorities_(kWarps * kBlocks) {}

bool Scheduler::chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

void Scheduler::add(Thread* thread) {
  const auto block = static_cast<std::size_t>(thread->block->index) % kBlocks;
  thread->favoured_with = kWarps * block + static_cast<std::size_t>(thread->index) / 32;
  ready_.push_back(thread);
}

void Scheduler::post(std::function<void()> job) {
  // Done at once, as by an infinitely fast machine.
  if (chance(eagerness_)) return job();
  jobs_.push_back(std::move(job));
}

void Scheduler::wake(Thread* thread) {
  thread->waiting = {};
  ready_.push_back(thread);
}

void Scheduler::suspend() {
  running->fibre->suspend();
  // Resumed only to unwind: the run has failed somewhere else.
  if (is_abandoned_) throw Abandoned{};
}

void Scheduler::park(Waiting waiting) {
  running->waiting = waiting;
  suspend();
}

void Scheduler::yield() {
  ready_.push_back(running);
  suspend();
}

void Scheduler::maybe_yield() {
  if (random_() % 8 == 0) yield();
}

Thread* Scheduler::pick() {
  // Draws new priorities now and then, so that no warp lags behind for a whole run.
  if (picks_++ % picks_per_mood_ == 0) {
    for (std::uint32_t& priority : priorities_) priority = static_cast<std::uint32_t>(random_());
  }
  const auto priority = [this](std::size_t i) { return priorities_[ready_[i]->favoured_with]; };
  std::size_t best = below(ready_.size());
  for (int i = 1; i < candidates_; ++i) {
    const std::size_t other = below(ready_.size());
    if (priority(other) > priority(best)) best = other;
  }
  std::swap(ready_[best], ready_.back());
  // Takes the thread out by a swap with the last one: the order of the list means nothing.
  Thread* thread = ready_.back();
  ready_.pop_back();
  return thread;
}

void Scheduler::run_a_job() {
  // Picks any job: asynchronous work has no order.
  std::swap(jobs_[below(jobs_.size())], jobs_.back());
  const auto job = std::move(jobs_.back());
  jobs_.pop_back();
  job();
}

void Scheduler::resume(Thread* thread) {
  running = thread;
  // Device code reads its place (thread, block) from a variable that is per thread of the host.
  here = thread->block->place_of(*thread);
  thread->fibre->resume();
  running = nullptr;
}

bool Scheduler::step() {
  // Asynchronous work must be done when no thread can run: they wait for it.
  if (!jobs_.empty() && (ready_.empty() || chance(eagerness_))) {
    run_a_job();
  } else if (!ready_.empty()) {
    resume(pick());
  } else {
    return false;
  }
  return true;
}

}  // namespace ringlab::cuda::emulator
