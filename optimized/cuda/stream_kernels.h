// The two kernels that rings need besides attention: sums of gradients, and injected delays.
#pragma once

#include <cstdint>

#include "optimized/cuda/stream.h"

namespace ringlab::cuda {

/// to += from, `count` numbers. Nothing is launched for 0 numbers.
void add_values(float* to, const float* from, std::int64_t count, Stream stream);

/// Makes the stream stand still for about so long, by the device's own clock.
void spin(std::int64_t nanoseconds, Stream stream);

}  // namespace ringlab::cuda
