// Kernels that compute at once become ones that compute when their stream comes to it.
#pragma once

#include <utility>

#include "optimized/ring/streams/cuda_streams.h"
#include "tests/optimized/ring/fake_streams.h"

namespace ringlab::ring {

template <class Call>
auto on_stream(std::function<void(const Call&, cuda::Stream)> kernel) {
  return [kernel = std::move(kernel)](const Call& call, cuda::Stream stream) {
    put_on(stream, [kernel, call, stream] { kernel(call, stream); });
  };
}

template <class Element>
DeviceKernels<Element> on_streams(DeviceKernels<Element> kernels) {
  kernels.forward = on_stream(std::move(kernels.forward));
  kernels.backward = on_stream(std::move(kernels.backward));
  kernels.clear_states = on_stream(std::move(kernels.clear_states));
  kernels.finish_rows = on_stream(std::move(kernels.finish_rows));
  if (kernels.delta_rows) kernels.delta_rows = on_stream(std::move(kernels.delta_rows));
  kernels.scale_to = on_stream(std::move(kernels.scale_to));
  return kernels;
}

}  // namespace ringlab::ring
