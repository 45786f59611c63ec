#include "property_tests/plugins/plugin_modifiers.h"

#include "reference/attention/modified.h"

namespace ringlab::plugins {

ringlab_modifiers plugin_modifiers(const Modifiers& modifiers) {
  ringlab_modifiers result = {};
  result.softcap = modifiers.softcap;
  result.dropout = modifiers.dropout;
  result.dropout_factor = dropout_factor(modifiers.dropout);
  result.dropout_seed = modifiers.dropout_seed;
  result.dropout_threshold = dropout_threshold(modifiers.dropout);
  for (const ModifierKind kind : kModifierKinds) {
    if (modifiers.has(kind)) result.kinds |= modifier_bit(kind);
  }
  return result;
}

std::vector<std::uint8_t> kept_pairs(const Modifiers& modifiers, const Shape& shape) {
  const Dropout dropout(modifiers);
  std::vector<std::uint8_t> kept;
  const Extents pairs{shape.batch, shape.q_heads, shape.q_tokens, shape.kv_tokens};
  kept.reserve(static_cast<std::size_t>(pairs.size()));
  for_each_index(pairs, [&](auto b, auto h, auto i, auto j) {
    kept.push_back(dropout.keeps(b, h, i, j) ? 1 : 0);
  });
  return kept;
}

}  // namespace ringlab::plugins
