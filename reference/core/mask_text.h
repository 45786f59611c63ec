// Masks from texts that name files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "reference/core/mask.h"

namespace ringlab {

using LoadBits = std::function<BitMask(const std::string& path)>;

/// Like parse_mask(text), with "file:PATH" terms handed to `load_bits`. PATH ends at a "+" only where
/// another term follows it, so "c++/m.npy" is one path.
Mask parse_mask(std::string_view text, const LoadBits& load_bits);

}  // namespace ringlab
