// Random score modifiers for a problem: each of them, and several together.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "tests/reference/attention/random_case.h"

namespace ringlab::testing {

class ModifierMaker {
 public:
  ModifierMaker(std::uint64_t seed, const Shape& shape) : random_(seed), shape_(shape) {}

  Modifiers make() {
    Modifiers modifiers;
    if (chance(0.5)) modifiers.softcap = std::exp(between(-1, 4));
    if (chance(0.5)) modifiers.alibi_slopes = slopes();
    if (chance(0.5)) {
      for (std::int64_t h = 0; h < shape_.q_heads; ++h) modifiers.sinks.push_back(sink());
    }
    if (chance(0.5)) {
      modifiers.dropout = chance(0.2) ? between(0.9, 1) : between(0, 0.6);
      modifiers.dropout_seed = random_();
    }
    return modifiers;
  }

 private:
  bool chance(double p) { return between(0, 1) < p; }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  double sink() { return chance(0.2) ? between(-60, 60) : between(-3, 3); }
  std::vector<double> slopes() {
    if (chance(0.5)) return default_alibi_slopes(shape_.q_heads);
    std::vector<double> result;
    for (std::int64_t h = 0; h < shape_.q_heads; ++h) {
      result.push_back(chance(0.2) ? 0 : between(-1, 2));
    }
    return result;
  }

  std::mt19937_64 random_;
  Shape shape_;
};

/// random_case with modifiers; the rest of the case is what it is without them.
inline RandomCase modified_case(std::uint64_t seed, const CaseLimits& limits = {}) {
  RandomCase c = random_case(seed, limits);
  c.problem.modifiers = ModifierMaker(seed + 1, c.problem.shape).make();
  return c;
}

}  // namespace ringlab::testing
