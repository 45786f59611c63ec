#include <thrust/execution_policy.h>
#include <thrust/mismatch.h>

#include "tests/optimized/cuda/device/first_difference.h"

namespace ringlab::cuda {
namespace {

struct SameBits {
  __device__ bool operator()(BFloat16 a, BFloat16 b) const { return a.bits == b.bits; }
};

}  // namespace

std::int64_t first_difference(const BFloat16* a, const BFloat16* b, std::int64_t count) {
  return thrust::mismatch(thrust::device, a, a + count, b, SameBits{}).first - a;
}

}  // namespace ringlab::cuda
