// A small problem in its own type, and what different ways of running it make of it, bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "optimized/ring/engine.h"
#include "property_tests/programs/simulated_streams.h"
#include "tests/optimized/ring/engine_trial.h"

namespace ringlab::ring {

/// All numbers of all ranks, as bits; any NaN is the same.
using Bits = std::vector<std::vector<std::uint64_t>>;

template <class T>
void append_bits(const Tensor<T>& tensor, std::vector<std::uint64_t>& bits) {
  for (const T& value : tensor.values()) {
    const auto wide = static_cast<double>(value);
    bits.push_back(wide == wide ? std::bit_cast<std::uint64_t>(wide) : ~std::uint64_t{0});
  }
}

/// The bits of what `run(ends)` hands over.
template <class Element, class Run>
Bits bits_of_run(const Trial& trial, Run run) {
  Bits bits(static_cast<std::size_t>(trial.options.ranks));
  run(Ends<Element>{
      .source = [&](const RankTokens& tokens) { return rows_of_trial<Element>(trial, tokens); },
      .sink =
          [&](const RankTokens& tokens, RankResult<Element>&& mine) {
            std::vector<std::uint64_t>& all = bits[static_cast<std::size_t>(tokens.rank)];
            append_bits(mine.out, all);
            append_bits(mine.lse, all);
            if (!mine.gradients) return;
            append_bits(mine.gradients->dq, all);
            append_bits(mine.gradients->dk, all);
            append_bits(mine.gradients->dv, all);
          }});
  return bits;
}

inline Bits engine_bits(const Trial& trial) {
  Bits bits;
  with_element_type(trial.problem.dtype, [&]<class Element>(Element) {
    bits = bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
      Engine().run(trial.problem, trial.options, ends);
    });
  });
  return bits;
}

inline Bits simulated_bits(const Trial& trial, const SimulatedStreams& streams) {
  Bits bits;
  with_element_type(trial.problem.dtype, [&]<class Element>(Element) {
    bits = bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
      Engine().run(trial.problem, trial.options, ends, OnSimulatedStreams(streams));
    });
  });
  return bits;
}

}  // namespace ringlab::ring
