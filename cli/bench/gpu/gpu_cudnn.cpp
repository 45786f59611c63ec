#include <memory>

#include "cli/bench/gpu/gpu_attention.h"
#include "cli/bench/gpu/gpu_works.h"
#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/ring/vendor/cudnn_kernels.h"

namespace ringlab::bench {
namespace {

constexpr int kFirstDevice = 0;

}  // namespace

GpuWork make_cudnn_attention(const GpuTimer& timer, const GpuCase& one) {
  const std::string name = cudnn::require_cudnn();
  const auto attention =
      std::make_shared<GpuAttention>(kFirstDevice, one, ring::cudnn_kernels<BFloat16>());
  return make_pass(timer, name, attention);
}

}  // namespace ringlab::bench
