// Channels padded to multiples of 8 for kernels on devices: padding is zeros, which change neither
// a score nor a gradient, and is cut off results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "optimized/ring/ends.h"

namespace ringlab::ring {

inline std::int64_t in_eights(std::int64_t channels) { return (channels + 7) / 8 * 8; }

/// The problem with padded channels; its scale, which does not depend on head_dim, stays.
inline Problem with_padded_channels(Problem problem) {
  problem.shape.head_dim = in_eights(problem.shape.head_dim);
  problem.shape.v_dim = in_eights(problem.shape.v_dim);
  return problem;
}

/// The tensor with another number of channels: cut off, or filled with zeros.
template <class Element>
Tensor<Element> with_channels(const TensorView<const Element>& from, std::int64_t channels) {
  Extents extents = from.extents;
  const std::int64_t common = std::min(extents.channels, channels);
  extents.channels = channels;
  Tensor<Element> to(extents);
  extents.channels = common;
  for_each_index(extents,
                 [&](auto b, auto h, auto t, auto c) { to(b, h, t, c) = from(b, h, t, c); });
  return to;
}

/// Ends of with_padded_channels(problem) for callers with tensors of the problem itself.
template <class Element>
Ends<Element> padded_ends(const Shape& shape, const Ends<Element>& ends) {
  if (shape.head_dim % 8 == 0 && shape.v_dim % 8 == 0) return ends;
  const auto cut = [](Tensor<Element>& tensor, std::int64_t channels) {
    tensor = with_channels(std::as_const(tensor).view(), channels);
  };
  const auto padded = [](const TensorView<const Element>& tensor) {
    return with_channels(tensor, in_eights(tensor.extents.channels));
  };
  return {.source =
              [ends, padded](const RankTokens& tokens) {
                return remade_rows<Element>(ends.source(tokens), padded);
              },
          .sink =
              [ends, shape, cut](const RankTokens& tokens, RankResult<Element>&& mine) {
                cut(mine.out, shape.v_dim);
                if (mine.gradients) {
                  cut(mine.gradients->dq, shape.head_dim);
                  cut(mine.gradients->dk, shape.head_dim);
                  cut(mine.gradients->dv, shape.v_dim);
                }
                ends.sink(tokens, std::move(mine));
              }};
}

}  // namespace ringlab::ring
