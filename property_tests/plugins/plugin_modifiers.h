// Score modifiers in the form that plugins read.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/modifiers.h"
#include "reference/core/problem.h"
#include "reference/core/ringlab_plugin.h"

namespace ringlab::plugins {

/// The RINGLAB_MODIFIER_ bit of a kind.
constexpr std::uint32_t modifier_bit(ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return RINGLAB_MODIFIER_SOFTCAP;
    case ModifierKind::alibi:
      return RINGLAB_MODIFIER_ALIBI;
    case ModifierKind::sinks:
      return RINGLAB_MODIFIER_SINKS;
    case ModifierKind::dropout:
      return RINGLAB_MODIFIER_DROPOUT;
  }
  return 0;
}
/// `modifiers` without its pointers.
ringlab_modifiers plugin_modifiers(const Modifiers& modifiers);

/// Dropout's choice for every pair, (batch, q_heads, q_tokens, kv_tokens): 1 where it is kept. As
/// much memory as all scores in bytes.
std::vector<std::uint8_t> kept_pairs(const Modifiers& modifiers, const Shape& shape);

}  // namespace ringlab::plugins
