// Runs one function over many rows on a few threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ringlab {

/// Calls make_worker() once per thread and the worker it gives once for every row 0 … rows-1, in no
/// order, on up to `threads` threads, this one included: on fewer where the machine has no more.
/// Each row is computed by one thread alone, so results do not depend on `threads`. The first
/// exception is rethrown here, after all threads have stopped.
template <class MakeWorker>
void parallel_rows(std::int64_t rows, int threads, const MakeWorker& make_worker) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      auto worker = make_worker();
      for (std::int64_t row = next++; row < rows; row = next++) worker(row);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = rows;  // the others may stop as well
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (int t = 1; t < threads && t < rows; ++t) helpers.emplace_back(run);
    } catch (...) {  // fewer threads than wished for do the same work
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ringlab
