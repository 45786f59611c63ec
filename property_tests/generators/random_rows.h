// Random inputs of which any row can be made alone: by the rank that holds it, or again by whoever
// checks it.
#pragma once

#include <cstdint>

#include "property_tests/generators/draws.h"
#include "reference/core/positions.h"
#include "reference/core/tensor.h"

namespace ringlab::verify {

enum class RandomTensor : std::int64_t { q, k, v, dout };

/// Standard normal numbers. A row depends on the seed, the tensor, its batch, head and token, and
/// on nothing else: not on who makes it, and not on how many tokens there are.
struct RandomRows {
  std::uint64_t seed = 1;
  RandomTensor tensor = RandomTensor::q;

  /// One row of `channels` numbers, each rounded to Element once.
  template <class Element>
  void fill(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t channels,
            Element* row) const {
    Draws draws(seed, {static_cast<std::int64_t>(tensor), batch, head, token});
    for (std::int64_t c = 0; c < channels; ++c) row[c] = static_cast<Element>(draws.normal());
  }
};

/// The rows of these tokens, of all batches and heads of `whole`.
template <class Element>
Tensor<Element> random_tensor(const RandomRows& random, const Extents& whole,
                              const Positions& tokens) {
  Tensor<Element> rows({whole.batch, whole.heads, tokens.size(), whole.channels});
  Element* next = rows.values().data();
  for (std::int64_t b = 0; b < whole.batch; ++b) {
    for (std::int64_t h = 0; h < whole.heads; ++h) {
      for (const PositionRun& run : tokens.runs()) {
        for (std::int64_t i = 0; i < run.count; ++i, next += whole.channels) {
          random.fill(b, h, run.first + i * run.stride, whole.channels, next);
        }
      }
    }
  }
  return rows;
}

}  // namespace ringlab::verify
