// The progress of some work, while it is being done.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringlab::cpu {

/// Adds the work of every finished part to a counter, in whatever unit its owner counts.
struct WorkDone {
  std::atomic<std::int64_t>* counter = nullptr;  ///< null: nobody asks
  std::int64_t amount = 0;                       ///< of all parts together

  /// Part number `part` of `parts` is done. The parts count as equal, and add up to `amount`.
  void note(std::int64_t part, std::int64_t parts) const {
    if (!counter) return;
    const std::int64_t share = amount / parts + (part < amount % parts ? 1 : 0);
    counter->fetch_add(share, std::memory_order_relaxed);
  }
};

}  // namespace ringlab::cpu
