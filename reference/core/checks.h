// Checks of a run's arguments before any work.
#pragma once

#include <cstdint>
#include <string>

#include "reference/core/tensor.h"

namespace ringlab {

/// Usage error naming `what` unless least <= value <= most.
void check_range(const char* what, std::int64_t value, std::int64_t least, std::int64_t most);

/// "(batch, heads, tokens, channels)".
std::string text(const Extents& extents);

/// Input error naming the tensor when its extents are not the expected ones.
void check_extents(const std::string& name, const Extents& actual, const Extents& expected);

}  // namespace ringlab
