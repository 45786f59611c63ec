// Ends in the type of the computation, for callers with doubles.
#pragma once

#include <type_traits>
#include <utility>

#include "optimized/ring/ends.h"

namespace ringlab::ring {

template <class From>
Tensor<double> widened(Tensor<From>&& from) {
  if constexpr (std::is_same_v<From, double>) {
    return std::move(from);
  } else {
    return dense_copy<double>(std::as_const(from).view());
  }
}

template <class Element>
RankResult<double> widened(RankResult<Element>&& mine) {
  RankResult<double> wide{.out = widened(std::move(mine.out)),
                          .lse = widened(std::move(mine.lse)),
                          .stats = std::move(mine.stats),
                          .seconds = mine.seconds};
  if (mine.gradients) {
    wide.gradients = {widened(std::move(mine.gradients->dq)),
                      widened(std::move(mine.gradients->dk)),
                      widened(std::move(mine.gradients->dv))};
  }
  return wide;
}

/// Rows are converted when they are asked for, results when they are handed over.
template <class Element>
Ends<Element> narrow_ends(const Ends<double>& wide) {
  return {
      .source =
          [wide](const RankTokens& tokens) {
            return remade_rows<Element>(wide.source(tokens), dense_copy<Element, const double>);
          },
      .sink = [wide](const RankTokens& tokens,
                     RankResult<Element>&& mine) { wide.sink(tokens, widened(std::move(mine))); }};
}

}  // namespace ringlab::ring
