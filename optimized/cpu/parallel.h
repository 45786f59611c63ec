// Parts of some work, shared out among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "optimized/cpu/work_done.h"

namespace ringlab::cpu {

/// Calls worker(part) for every part in 0 … parts-1, each once, on up to `threads` threads, this
/// one included; each thread asks make_worker() for a worker of its own. Chance decides which
/// thread does which part. Rethrows the first exception of a thread, when all have ended. `done` is
/// told of every part that was finished.
template <class MakeWorker>
void share_out(std::int64_t parts, int threads, const MakeWorker& make_worker,
               const WorkDone& done = {}) {
  std::atomic<std::int64_t> next = 0;
  std::exception_ptr thrown;
  std::mutex throwing;
  const auto work = [&] {
    try {
      auto worker = make_worker();
      for (std::int64_t part = next++; part < parts; part = next++) {
        worker(part);
        done.note(part, parts);
      }
    } catch (...) {
      const std::lock_guard lock(throwing);
      if (!thrown) thrown = std::current_exception();
      next = parts;  // the others may stop as well
    }
  };
  {
    std::vector<std::jthread> others;
    const std::int64_t wanted = std::min<std::int64_t>(threads, parts);
    try {
      for (std::int64_t i = 1; i < wanted; ++i) others.emplace_back(work);
    } catch (...) {  // fewer threads than wished for do the same work
    }
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ringlab::cpu
