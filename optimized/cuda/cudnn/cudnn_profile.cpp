#include "optimized/cuda/cudnn/cudnn_profile.h"

#include "optimized/cuda/kernel_profile.h"

namespace ringlab::cudnn {

NumericsProfile cudnn_profile(DType dtype, const CudnnWork& work) {
  const std::int64_t blocks = work.blocks, merges = work.merges;
  // References of exponentials may lag as in the Hopper kernel: cuDNN for new chips does so, too.
  NumericsProfile profile = cuda::hopper_profile(dtype, blocks);
  // log2 e times the factor of the scores is rounded three times on its way, instead of once.
  profile.u_accumulate += 2 * profile.u_work;
  profile.query_gradient_stores = work.query_gradient_stores;
  profile.key_gradient_stores = work.key_gradient_stores;
  profile.key_gradient_heads = work.key_gradient_heads;
  if (merges == 0) return profile;
  profile.lse_merges = merges;
  profile.u_partial = dtype_info(dtype).unit_roundoff;
  // Outputs are rounded once for each merge, not once for each block. Rescaling is therefore
  // counted by merges, each as inexact as all rescaling of its blocks.
  profile.max_rescales = merges;
  const double share = static_cast<double>(blocks + merges + 1) / static_cast<double>(merges + 1);
  profile.exp_error *= share;
  profile.u_work *= share;
  return profile;
}

}  // namespace ringlab::cudnn
