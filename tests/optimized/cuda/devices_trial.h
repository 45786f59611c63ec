// Whole rings on devices against the exact reference and against the engine on the CPU.
#pragma once

#include <string>

#include "optimized/ring/streams/cuda_streams.h"
#include "tests/optimized/kernels/kernel_case.h"

namespace ringlab::cuda {

struct DevicesCase {
  KernelCase ring;
  std::string schedule = "ring";
  ring::DeviceRun run = {};
  std::string text() const;
};

struct DevicesTrial {
  KernelTrial ring;
  RunOptions options;

  AttentionInput input() const {
    AttentionInput input = ring.input();
    input.dout = ring.dout.view();
    return input;
  }
};
DevicesTrial make_trial(const DevicesCase& c, DType dtype);

/// Forward and backward, OnStreams.
template <class Element>
RunResult run_devices(const DevicesTrial& trial, const ring::DeviceKernels<Element>& kernels,
                      const ring::DeviceRun& run);

/// Empty, or what is wrong by the bounds of device_engine_profile(), or what differs from
/// the engine on processors by more than both promise.
std::string judge_devices(const DevicesTrial& trial, const RunResult& got);

/// All numbers are the same.
bool same_numbers(const RunResult& a, const RunResult& b);

}  // namespace ringlab::cuda
