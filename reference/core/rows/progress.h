// Telling somebody how far a long computation is.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace ringlab {

/// Called with the rows done and the rows in all, from any thread, by one thread at a time. What it
/// throws ends the computation, and comes out of it.
using RowProgress = std::function<void(std::int64_t done, std::int64_t rows)>;

/// Counts rows for all threads. Without a callback nothing is locked.
class RowCounter {
 public:
  RowCounter(const RowProgress& progress, std::int64_t rows) : progress_(progress), rows_(rows) {}
  void operator()() const {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    progress_(++done_, rows_);
  }

 private:
  const RowProgress& progress_;
  std::int64_t rows_;
  mutable std::int64_t done_ = 0;
  mutable std::mutex mutex_;
};

}  // namespace ringlab
