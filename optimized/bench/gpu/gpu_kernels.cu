#include <cuda_bf16.h>

#include <algorithm>

#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/cuda/check_cuda.h"

namespace ringlab::bench {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

/// A well-mixed function of a counter (the finaliser of MurmurHash3, public domain, 64 bits).
__device__ std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

/// Box and Muller 1958: two uniform numbers make a normal one.
__device__ float normal(std::uint64_t bits) {
  const float scale = 1.0f / 16777216.0f;
  const float radius = (static_cast<float>(bits & 0xffffff) + 0.5f) * scale;
  const float turn = static_cast<float>((bits >> 32) & 0xffffff) * scale;
  return sqrtf(-2 * logf(radius)) * cospif(2 * turn);
}

__global__ void __launch_bounds__(kThreads)
    fill_normal_kernel(__nv_bfloat16* to, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    const std::uint64_t stream = mixed(seed + 1ull);
    to[i] = __float2bfloat16(normal(mixed(stream + static_cast<std::uint64_t>(i))));
  }
}

__device__ std::int64_t now_ns() {
  std::int64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void sample_clock_kernel(std::int64_t* to) {
  constexpr std::int64_t kNanoseconds = 2'000'000;
  const std::int64_t begin_ns = now_ns();
  const std::int64_t begin = clock64();
  std::int64_t end_ns = begin_ns;
  while (end_ns - begin_ns < kNanoseconds) end_ns = now_ns();
  to[0] = clock64() - begin;
  to[1] = end_ns - begin_ns;
}

}  // namespace

void fill_normal(BFloat16* to, std::int64_t count, std::uint32_t seed, cuda::Stream stream) {
  static_assert(sizeof(BFloat16) == sizeof(__nv_bfloat16));
  if (count == 0) return;
  const std::int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  fill_normal_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      reinterpret_cast<__nv_bfloat16*>(to), count, seed);
  cuda::check_cuda(cudaGetLastError(), "launch", "fill_normal");
}

void sample_clock(std::int64_t* to, cuda::Stream stream) {
  sample_clock_kernel<<<1, 1, 0, stream>>>(to);
  cuda::check_cuda(cudaGetLastError(), "launch", "sample_clock");
}

}  // namespace ringlab::bench
