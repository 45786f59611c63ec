// Works on a device that are more than one launch.
#pragma once

#include "cli/bench/gpu.h"
#include "cli/bench/gpu_timer.h"

namespace ringlab::bench {

/// A kernel on one stream and copies on another, step by step. `timer` outlives what is made here.
GpuWork make_hops(const GpuTimer& timer, const HopCase& one);

/// Gpu::cudnn_attention().
GpuWork make_cudnn_attention(const GpuTimer& timer, const GpuCase& one);

/// The forward pass of a ring of ranks that are all on the first device.
GpuWork make_ring(const GpuCase& one, int ranks);

/// NVIDIA's matrix product, from a library that is looked for when this is called. Environment
/// error when there is none.
GpuWork make_matrix_product(const GpuTimer& timer, std::int64_t n);

}  // namespace ringlab::bench
