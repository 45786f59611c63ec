// The forward kernel on a roofline: operations per second over operations per byte.
// (Williams, Waterman, Patterson 2009, Roofline: an insightful visual performance model.)
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "optimized/bench/measure/timing.h"

namespace ringlab::bench {

/// The bandwidth at which one thread reads, from memory or from a cache.
struct Bandwidth {
  std::string where;  ///< "memory", "L2 cache", "L1 cache"
  std::int64_t buffer_bytes = 0;
  double bytes_per_s = 0;  ///< of one thread's processor time, the best of a few runs
};

/// Memory that was written once, to be read from end to end.
class ReadBuffer {
 public:
  explicit ReadBuffer(std::int64_t bytes);
  std::int64_t bytes() const { return blocks_ * kBlock; }
  /// Reads the whole buffer, each thread a part.
  void read(int threads) const;

 private:
  static constexpr std::int64_t kBlock = 512;  // a multiple of the bytes of a step of the loop
  struct FreeMemory {
    void operator()(char* memory) const { std::free(memory); }
  };

  std::int64_t blocks_;
  std::unique_ptr<char, FreeMemory> memory_;
};

/// Measures the bytes a second of reading a buffer from end to end, over and over.
Bandwidth measure_reading(const std::string& where, std::int64_t buffer_bytes);

/// Bandwidths of L1, L2 and memory; a cache whose size the system does not tell is left out.
std::vector<Bandwidth> measure_bandwidths();

/// A peak of operations per second, of one kind.
struct Ceiling {
  std::string name;
  double flops_per_s = 0;
};

struct RooflinePoint {
  std::string name;           ///< "d=128, 192 queries share K and V"
  double flops_per_byte = 0;  ///< bytes beyond the first-level cache, at least
  Spread flops_per_s = {};
};

struct Roofline {
  std::vector<Ceiling> ceilings;
  std::vector<Bandwidth> slopes;
  std::vector<RooflinePoint> points;
};

/// Measures f32 on one thread: tiles of several sizes on a sequence, and few queries against a long
/// one, as in decoding; quick: against a quarter of that. Takes seconds.
Roofline measure_roofline(bool quick);

}  // namespace ringlab::bench
