// What the measurements need on a device besides attention. No CUDA header is seen here.
#pragma once

#include <cstdint>

#include "optimized/cuda/stream.h"
#include "reference/core/dtype.h"

namespace ringlab::bench {

/// Standard normal numbers, the same for the same seed.
void fill_normal(BFloat16* to, std::int64_t count, std::uint32_t seed, cuda::Stream stream);

/// to[0] cycles of a multiprocessor pass in to[1] nanoseconds, about 2 million of them.
void sample_clock(std::int64_t* to, cuda::Stream stream);

}  // namespace ringlab::bench
