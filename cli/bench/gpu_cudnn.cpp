#include <memory>

#include "cli/bench/gpu_attention.h"
#include "cli/bench/gpu_works.h"
#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/ring/cudnn_kernels.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

constexpr int kFirstDevice = 0;

}  // namespace

GpuWork make_cudnn_attention(const GpuTimer& timer, const GpuCase& one) {
  if (one.pass == Pass::backward) {
    throw_environment_error({.where = "cuDNN",
                             .expected = "a forward pass",
                             .actual = "a backward one",
                             .hint = "PyTorch asks it for gradients"});
  }
  const std::string name = cudnn::require_cudnn();
  const auto attention = std::make_shared<GpuAttention>(
      kFirstDevice, one, ring::cudnn_kernels<BFloat16>(problem_of(one).shape));
  return {name, [&timer, attention] {
            return timer.seconds_of([&](cuda::Stream stream) { attention->issue(stream); });
          }};
}

}  // namespace ringlab::bench
