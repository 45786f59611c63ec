// How fast this processor reads: from memory, or from a cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringlab::bench {

struct Bandwidth {
  std::string where;  ///< "memory", "L2 cache", "L1 cache"
  std::int64_t buffer_bytes = 0;
  double bytes_per_s = 0;  ///< of one thread's processor time, the best of a few runs
};

/// Reads a buffer from end to end, over and over; the bytes read in a second.
Bandwidth measure_reading(const std::string& where, std::int64_t buffer_bytes);

/// L1, L2 and memory, as large as the system says they are; what it does not say is left out.
std::vector<Bandwidth> measure_bandwidths();

}  // namespace ringlab::bench
