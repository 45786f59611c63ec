// A block of threads on a CPU: a phase is a loop over the threads, the barrier is its end.
//
// A kernel is a plain struct with `template <class Block> void operator()(Block& block) const`.
// Code between phases is the same for the whole block; code inside a phase is one thread's. What a
// thread reads may come from its own phase or from any thread's *earlier* phase, never from another
// thread's same phase: there is no barrier inside one. The threads of a phase run in a shuffled
// order, so a kernel that breaks the rule gives other answers for other seeds (and shared memory
// starts as NaN, so what nobody wrote is seen too). stages/cuda/cuda_block.cuh is the GPU twin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace ringlab::stages {

class CpuBlock {
 public:
  CpuBlock(std::int64_t index, int threads, std::uint64_t seed)
      : index_(index),
        random_(seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(index) + 1),
        order_(static_cast<std::size_t>(threads)) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  std::int64_t index() const { return index_; }
  int threads() const { return static_cast<int>(order_.size()); }

  /// Runs `phase(thread)` for every thread of the block, then the barrier.
  template <class Phase>
  void each(Phase phase) {
    shuffle();
    for (const int thread : order_) phase(thread);
  }

  /// One T per thread, kept from phase to phase: a register on the GPU. Use: values[thread].
  template <class T>
  std::vector<T> per_thread() const {
    return std::vector<T>(order_.size());
  }

  /// `count` values that all threads of the block see. Holds NaN (all bits set) at first.
  template <class T>
  T* shared(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    shared_.push_back(std::make_unique<std::byte[]>(bytes));
    std::memset(shared_.back().get(), 0xff, bytes);
    shared_bytes_ += static_cast<std::int64_t>(bytes);
    return reinterpret_cast<T*>(shared_.back().get());
  }
  std::int64_t shared_bytes() const { return shared_bytes_; }

 private:
  void shuffle() {  // Fisher-Yates over xorshift64*
    for (std::size_t i = order_.size(); i > 1; --i) {
      random_ ^= random_ >> 12;
      random_ ^= random_ << 25;
      random_ ^= random_ >> 27;
      std::swap(order_[i - 1], order_[((random_ * 0x2545f4914f6cdd1dull) >> 33) % i]);
    }
  }

  std::int64_t index_;
  std::uint64_t random_;
  std::vector<int> order_;
  std::vector<std::unique_ptr<std::byte[]>> shared_;
  std::int64_t shared_bytes_ = 0;
};

}  // namespace ringlab::stages
