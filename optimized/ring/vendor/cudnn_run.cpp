#include "optimized/ring/vendor/cudnn_run.h"

#include <numbers>

#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/cuda/device.h"
#include "reference/core/error.h"

namespace ringlab::ring {

void check_cudnn_on(int device, const Problem& problem) {
  const Shape& s = problem.shape;
  const cuda::BlockShape shape{.q_heads = static_cast<std::int32_t>(s.q_heads),
                               .kv_heads = static_cast<std::int32_t>(s.kv_heads),
                               .head_dim = static_cast<std::int32_t>(s.head_dim),
                               .v_dim = static_cast<std::int32_t>(s.v_dim)};
  const auto scale = static_cast<float>(problem.scale * std::numbers::log2e);
  const cuda::DeviceFacts facts = cuda::device_facts(device);
  const std::string reason = cudnn::why_not_cudnn(shape, scale, facts.compute_capability);
  if (reason.empty()) return;
  throw_environment_error({.where = "cuDNN on device " + std::to_string(device),
                           .expected = "what its attention takes",
                           .actual = reason,
                           .hint = "`optimized` has kernels of its own"});
}

std::string cudnn_text() { return cudnn::require_cudnn(); }

bool is_cudnn_compiled_in() { return cudnn::compiled_in(); }

void require_cudnn_and_devices() {
  cudnn::require_cudnn();
  cuda::device_count();
}

}  // namespace ringlab::ring
