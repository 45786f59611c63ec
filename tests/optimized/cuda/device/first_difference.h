// Comparing what lies on a device where it lies.
#pragma once

#include <cstdint>

#include "reference/core/small_float.h"

namespace ringlab::cuda {

/// The first of `count` elements in which `a` and `b`, on the current device, differ in a bit;
/// `count` where there is none. What was put on the default stream has ended by then.
std::int64_t first_difference(const BFloat16* a, const BFloat16* b, std::int64_t count);

}  // namespace ringlab::cuda
