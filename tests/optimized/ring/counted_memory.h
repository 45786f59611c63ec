// Counts the allocations of a program, and refuses some of them on demand. A program that links
// counted_memory.cpp has its operator new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace ringlab::counted_memory {

/// Allocations that have not been freed.
std::int64_t live();

/// From its making until end(), allocations number first … first + count - 1 of all threads fail.
/// One at a time.
class Outage {
 public:
  static constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max() / 2;
  Outage(std::int64_t first, std::int64_t count);
  Outage(const Outage&) = delete;
  Outage& operator=(const Outage&) = delete;
  ~Outage() { end(); }
  void end();
};

/// Where on its stack the code was whose allocation was the first to fail in the last outage; null
/// when none failed. Read it when all threads of the outage have been joined.
const char* victim();

/// Whether two places are on one stack: those of ranks and callers are further apart than what one
/// of them uses.
inline bool on_one_stack(const char* one, const char* other) {
  constexpr std::ptrdiff_t kUsed = 128 << 10;
  return std::abs(one - other) < kUsed;
}

}  // namespace ringlab::counted_memory
