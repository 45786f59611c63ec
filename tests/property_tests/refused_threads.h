// Refuses threads on demand. A program that links refused_threads.cpp has its pthread_create.
#pragma once

#include <cstdint>

namespace ringlab::refused_threads {

/// From its making until its end, threads number first … first + count - 1 cannot be had. One at a
/// time.
class Shortage {
 public:
  Shortage(std::int64_t first, std::int64_t count);
  ~Shortage();
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

  /// How many threads were refused.
  std::int64_t refused() const;
};

}  // namespace ringlab::refused_threads
