// Amounts that training and serving count with.
#pragma once

#include <cstdint>

#include "reference/model/training/transformer.h"

namespace ringlab::model {

/// Bytes of a number.
inline constexpr double kWeightBytes = 2, kActivationBytes = 2, kLogitBytes = 4;

/// Collectives of a layer in a tensor group, in either direction: two gather and two scatter.
inline constexpr double kCollectives = 4;

/// Ranks of a ring that is asked for its memory, where nodes are small: one of more with as long chunks
/// holds as much.
inline constexpr int kRanksAsked = 8;

/// The largest of so many parts.
inline double ceil_of(std::int64_t whole, std::int64_t parts) {
  const std::int64_t up = (whole + parts - 1) / parts;
  return static_cast<double>(up);
}

/// Numbers inside the feed-forward networks that a token goes through.
inline double feed_forward_numbers(const Transformer& m) {
  return static_cast<double>((m.gated ? 3 : 2) * m.feed_forward * m.experts_per_token);
}

/// Layers with a window, as a share of all.
inline double windowed_share(const Transformer& m) {
  return static_cast<double>(m.windowed_layers) / static_cast<double>(m.layers);
}

}  // namespace ringlab::model
