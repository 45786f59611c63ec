#include "optimized/ring/cudnn_kernels.h"

#include "optimized/cuda/cudnn/forward_cudnn.h"
#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/cuda/portable.h"

namespace ringlab::ring {

template <class Element>
DeviceKernels<Element> cudnn_kernels(const Shape& shape) {
  const auto head_dim = static_cast<std::int32_t>(shape.head_dim);
  const auto v_dim = static_cast<std::int32_t>(shape.v_dim);
  return {.why_not = cuda::why_not_portable,
          .forward_tile_queries = cuda::forward_portable_tile_queries(),
          .backward_tile_queries = cuda::backward_portable_tile_queries(head_dim, v_dim),
          .forward = cudnn::CudnnForward<Element>({.runner = cudnn::cudnn_runner(),
                                                   .clear_states = &cuda::clear_states,
                                                   .merge_rows = &cuda::merge_rows<Element>,
                                                   .finish_rows = &cuda::finish_rows<Element>}),
          .backward = &cuda::backward_portable<Element>,
          .clear_states = &cuda::clear_states,
          .finish_rows = &cuda::finish_rows<Element>,
          .delta_rows = &cuda::delta_rows<Element>,
          .scale_to = &cuda::scale_to<Element>};
}
template DeviceKernels<Half> cudnn_kernels(const Shape&);
template DeviceKernels<BFloat16> cudnn_kernels(const Shape&);

}  // namespace ringlab::ring
