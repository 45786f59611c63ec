// Stage 12 on devices: stage 08's streams, and the fast kernels where they take the problem.
#pragma once

#include "stages/11_skipping_ring/on_streams.h"
#include "stages/12_overlapped_causal_ring/streamed_fast.h"
#include "stages/12_overlapped_causal_ring/tensor_cores.h"

namespace ringlab::stages::overlapped_causal_ring {

/// `find_kernels(Element{})` gives the fast kernels of Half and BFloat16, and is asked where they take
/// the problem.
template <class Element, class FindKernels>
void run_on_streams(const DeviceRing<Element>& ring, FindKernels find_kernels) {
  const RankProblem<Element>& any = ring.ranks.front();
  if constexpr (sizeof(Element) == 2) {
    if (takes_fast_kernel(any.problem, any.options)) {
      const ringlab::ring::DeviceKernels<Element>& kernels = find_kernels(Element{});
      return run_streamed_ring("overlapped_causal_ring", ring.ranks, ring.moved, ring.slots(),
                               [&](RankProblem<Element>& r, int device) {
                                 return StreamedFast<Element>(
                                     r, device, tokens_of(r, EmptyBlocks::skipped), kernels);
                               });
    }
  }
  skipping_ring::run_on_streams(ring, "overlapped_causal_ring");
}

}  // namespace ringlab::stages::overlapped_causal_ring
