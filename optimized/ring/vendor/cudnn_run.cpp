#include "optimized/ring/vendor/cudnn_run.h"

#include <algorithm>
#include <numbers>

#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/cuda/device.h"
#include "optimized/ring/vendor/cudnn_kernels.h"
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

template <class Element>
NativeSummary run_native_on_cudnn(const Problem& problem, const RunOptions& options,
                                  const NativeEnds<Element>& ends) {
  const int devices = std::min(cuda::device_count(), options.ranks);
  for (int device = 0; device < devices; ++device) check_cudnn_on(device, problem);
  return run_on_devices<Element>(
      problem, options, ends, cudnn_kernels<Element>(),
      {.gradients = repeatable_gradients(options), .timeout_s = options.timeout_s});
}
template NativeSummary run_native_on_cudnn(const Problem&, const RunOptions&,
                                           const NativeEnds<Half>&);
template NativeSummary run_native_on_cudnn(const Problem&, const RunOptions&,
                                           const NativeEnds<BFloat16>&);

}  // namespace ringlab::ring
