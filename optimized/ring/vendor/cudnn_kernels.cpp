#include "optimized/ring/vendor/cudnn_kernels.h"

#include "optimized/cuda/cudnn/sdpa_plans.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/ring/vendor/cudnn_in_rings.h"

namespace ringlab::ring {

template <class Element>
DeviceKernels<Element> cudnn_kernels() {
  return kernels_around<Element>(cudnn::cudnn_runner(), {.clear_states = &cuda::clear_states,
                                                         .merge_rows = &cuda::merge_rows<Element>,
                                                         .finish_rows = &cuda::finish_rows<Element>,
                                                         .add_rows = &cuda::add_rows<Element>,
                                                         .pack_rows = &cuda::pack_rows,
                                                         .scale_to = &cuda::scale_to<Element>});
}
template DeviceKernels<Half> cudnn_kernels();
template DeviceKernels<BFloat16> cudnn_kernels();

}  // namespace ringlab::ring
