// A CUDA stream for code that launches kernels but sees no CUDA header.
#pragma once

struct CUstream_st;

namespace ringlab::cuda {

/// cudaStream_t; null is the default stream.
using Stream = CUstream_st*;

}  // namespace ringlab::cuda
