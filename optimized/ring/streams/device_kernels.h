// The choice of kernels of optimized/cuda for a run on devices.
#pragma once

#include <string>

#include "optimized/cuda/kernels.h"
#include "optimized/ring/streams/cuda_streams.h"

namespace ringlab::ring {

enum class ForwardKernel { hopper, portable };

/// The kernels that compute, and their devices.
struct KernelChoice {
  ForwardKernel forward = ForwardKernel::portable;
  bool is_backward_hopper = false;  ///< false wherever `forward` is portable
  std::string why_not_hopper;       ///< empty for ForwardKernel::hopper
  std::string devices;              ///< "2 x NVIDIA H100 80GB HBM3"

  /// "forward and backward: Hopper (wgmma)", or which is portable and why.
  std::string text() const;
};

/// The fastest kernels that all `devices` devices (0: all that there are) can run for this problem.
/// Environment error where there is no device, or one of compute capability below 8.0.
KernelChoice choose_kernels(const Problem& problem, const RunOptions& options, int devices = 0);
/// The fastest kernels for the one device with this number; KernelChoice::devices is its name.
KernelChoice choose_kernels_on(int device, const Problem& problem, const RunOptions& options);

/// The host functions of kernels.h and portable.h; the backward pass is Hopper's where the forward
/// pass is and it takes the heads. check_kernels() has usage errors for shapes. `grid`: of
/// forward_hopper(); other kernels ignore it.
template <class Element>
DeviceKernels<Element> device_kernels(ForwardKernel forward, const Shape& shape,
                                      const cuda::ForwardGrid& grid = {});

}  // namespace ringlab::ring
