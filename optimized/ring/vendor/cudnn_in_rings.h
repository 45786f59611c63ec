// Attention by graphs, in both passes, as the kernels of rings: cuDNN's, or a stand-in of tests.
#pragma once

#include <functional>
#include <memory>

#include "optimized/cuda/cudnn/backward_cudnn.h"
#include "optimized/cuda/cudnn/forward_cudnn.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/ring/streams/cuda_streams.h"

namespace ringlab::ring {

/// Kernels for rows that rings need besides attention, on the current device.
template <class Element>
struct RowKernels {
  std::function<void(const cuda::ClearStates&, cuda::Stream)> clear_states;
  std::function<void(const cuda::MergeRows<Element>&, cuda::Stream)> merge_rows;
  std::function<void(const cuda::FinishRows<Element>&, cuda::Stream)> finish_rows;
  std::function<void(const cuda::AddRows<Element>&, cuda::Stream)> add_rows;
  std::function<void(const cuda::PackRows&, cuda::Stream)> pack_rows;
  std::function<void(const cuda::ScaleTo<Element>&, cuda::Stream)> scale_to;
};

/// Kernels of both passes, which share scratch memory of streams. They take masks by rows, and
/// tiles of any size.
template <class Element>
DeviceKernels<Element> kernels_around(const cudnn::SdpaRunner& runner,
                                      const RowKernels<Element>& rows) {
  const auto scratch = std::make_shared<cudnn::StreamScratch>();
  DeviceKernels<Element> kernels;
  kernels.why_not = cuda::why_not_portable;
  const cudnn::CudnnForward<Element> forward({.runner = runner,
                                              .clear_states = rows.clear_states,
                                              .merge_rows = rows.merge_rows,
                                              .finish_rows = rows.finish_rows},
                                             scratch);
  const cudnn::CudnnBackward<Element> backward(
      {.runner = runner, .add_rows = rows.add_rows, .pack_rows = rows.pack_rows}, scratch);
  kernels.forward = forward;
  kernels.backward = backward;
  kernels.clear_states = rows.clear_states;
  kernels.finish_rows = rows.finish_rows;
  kernels.scale_to = rows.scale_to;
  kernels.sums_are_scaled = true;
  kernels.gives_results = cudnn::CudnnBackward<Element>::gives_results;
  kernels.needs = {
      .leaves_state = cudnn::CudnnForward<Element>::leaves_state,
      .forward_bytes = [forward](const auto& call) { return forward.scratch_bytes(call); },
      .backward_bytes =
          [backward](const auto& call, GradientsAs as) {
            return as == GradientsAs::results ? backward.scratch_bytes_with_results(call)
                                              : backward.scratch_bytes(call);
          },
      .reserve = [scratch](
                     std::int64_t bytes,
                     cuda::Stream stream) { scratch->of(cuda::current_device(), stream, bytes); }};
  return kernels;
}

}  // namespace ringlab::ring
