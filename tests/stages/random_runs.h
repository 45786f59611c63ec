// Random problems and run options for the stages, small and odd on purpose.
#pragma once

#include <random>
#include <string>

#include "reference/core/run.h"

namespace ringlab::stages::testing {

/// Seeded; the same on every machine.
class RandomRuns {
 public:
  explicit RandomRuns(std::uint64_t seed) : random_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::uint64_t seed() { return random_(); }

  Shape shape();                     ///< 0 … 23 tokens on either side, grouped heads, d 1 … 9
  std::string mask(const Shape& s);  ///< any kind but bit matrices
  BitMask bits(const Shape& s);      ///< half of the pairs, a few rows empty
  RunOptions options();              ///< 1 … 7 ranks, any layout, transport, nodes, tiles 1 … 9
  Layout uneven_layout(std::int64_t tokens, int ranks);  ///< chunk lengths at random, zeros too

 private:
  std::mt19937_64 random_;
};

/// For failure messages.
std::string describe(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::stages::testing
