// One pass of attention on a device: tensors, masks and kernels, to be put on a stream.
#pragma once

#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_case.h"
#include "optimized/bench/gpu/gpu_sample.h"
#include "optimized/cuda/device.h"
#include "optimized/ring/streams/cuda_streams.h"
#include "reference/core/problem.h"

namespace ringlab::bench {

/// The problem of a case.
Problem problem_of(const GpuCase& one);

/// "Hopper", or "portable": the kernels that compute a case on this machine's devices.
std::string kernel_name(const GpuCase& one, const RunOptions& options);

/// Random inputs; for a backward pass, out and lse of a forward one. On one device.
class GpuAttention {
 public:
  GpuAttention(int device, const GpuCase& one);
  /// With kernels of the caller's choice.
  GpuAttention(int device, const GpuCase& one, const ring::DeviceKernels<BFloat16>& kernels);

  std::string kernel() const { return kernel_name(case_, {}); }
  /// Puts the pass on the stream. Forward: one launch. Backward: delta, gradients summed from zero
  /// and rounded; or one launch where the kernels give the results themselves.
  void issue(cuda::Stream stream) const;
  /// A sample of the last K/V head: the last query head that reads it, or with gradients all. To be
  /// called when issued work has ended.
  GpuSample sample() const;

 private:
  using Element = BFloat16;

  cuda::BlockShape shape() const;
  cuda::ForwardCall<Element> forward_call() const;
  cuda::BackwardCall<Element> backward_call() const;
  void make_mask();
  void make_gradients();
  void issue_backward(cuda::Stream stream) const;
  void issue_with_sums(const cuda::BackwardCall<Element>& call, cuda::Stream stream) const;
  template <class T>
  Tensor<T> last_heads(const cuda::DeviceTensor<T>& tensor, std::int64_t heads,
                       std::int64_t channels) const;
  std::int64_t rows() const { return case_.q_heads * case_.tokens; }

  const int device_;
  const GpuCase case_;
  const Problem problem_;
  const ring::DeviceKernels<Element> kernels_;
  cuda::DeviceTensor<Element> q_, k_, v_, out_, dout_, dq_, dk_, dv_;
  cuda::DeviceTensor<float> lse_, delta_, dq_sum_, dk_sum_, dv_sum_, accs_;
  cuda::DeviceTensor<SoftmaxState<float>> states_;
  std::vector<cuda::KeyRange> host_rows_;
  cuda::DeviceTensor<cuda::KeyRange> mask_rows_;
  cuda::DeviceTensor<cuda::TileKeys> forward_tiles_, backward_tiles_;
  bool gives_results_ = false;  // the kernels write the gradients themselves
};

}  // namespace ringlab::bench
