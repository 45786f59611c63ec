// A mask in the forms that plugins read.
#pragma once

#include <cstdint>
#include <vector>

#include "property_tests/abilities.h"
#include "reference/core/mask.h"
#include "reference/core/ringlab_plugin.h"

namespace ringlab::plugins {

/// `mask` without its pointers, and the arrays that they are to point to.
struct PluginMask {
  ringlab_mask mask = {};
  std::vector<std::int64_t> starts, positions, visible_begin, visible_end;
  std::vector<std::uint8_t> bytes;  ///< empty when nobody wants them
};

/// Converts a mask. Several terms of a kind become one: the narrowest window, the shortest prefix,
/// documents cut wherever one of them is. `abilities`: ringlab_abilities::masks.
PluginMask plugin_mask(const Mask& mask, std::uint32_t abilities);

/// ringlab_abilities::masks, in our words.
verify::MaskAbilities mask_abilities(std::uint32_t abilities);

}  // namespace ringlab::plugins
