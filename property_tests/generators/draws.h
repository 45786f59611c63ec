// Seeded random numbers that are the same on every machine: integers and exact arithmetic only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace ringlab::verify {

/// SplitMix64 (Steele, Lea and Flood 2014).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  /// A stream of its own for every list of keys.
  Draws(std::uint64_t seed, std::initializer_list<std::int64_t> keys) : state_(seed) {
    for (const std::int64_t key : keys) state_ = next() ^ static_cast<std::uint64_t>(key);
    next();
  }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 … count-1; 0 when count is below 1.
  std::int64_t below(std::int64_t count) {
    return count < 1 ? 0 : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  /// first … last, both included.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + below(last - first + 1);
  }
  bool chance(int percent) { return below(100) < percent; }
  /// A random order (Fisher and Yates).
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::int64_t i = std::ssize(values); i > 1; --i) {
      std::swap(values[static_cast<std::size_t>(i - 1)],
                values[static_cast<std::size_t>(below(i))]);
    }
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double symmetric() { return 2.0 * unit() - 1.0; }                      // [-1, 1)
  double sign() { return (next() >> 63) ? 1.0 : -1.0; }
  /// Mean 0, variance 1, within ±6: a sum of twelve uniforms (Irwin-Hall), which needs no libm.
  double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }

 private:
  std::uint64_t state_;
};

}  // namespace ringlab::verify
