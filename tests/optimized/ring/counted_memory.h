// Counts the allocations of a program, and refuses some of them on demand. A program that links
// counted_memory.cpp has its operator new.
#pragma once

#include <cstdint>
#include <limits>
#include <thread>

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

/// The thread whose allocation was the first to fail in the last outage; no thread when none was.
/// Read it when all threads of the outage have been joined.
std::thread::id victim();

}  // namespace ringlab::counted_memory
